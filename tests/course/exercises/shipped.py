"""The chapters of this course, which keep to its rules of form; those of others need not."""

SHIPPED = (
    "00_start",
    "01_tensors",
    "02_operations",
    "03_memory",
    "04_broadcasting",
    "05_autograd",
    "06_gradient_control",
    "07_higher_order",
    "08_devices",
    "09_training",
    "10_engine",
    "11_dispatch",
    "12_kernels",
)
