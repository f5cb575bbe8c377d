"""What runs beside a learner's code while it is graded, and what limits that code."""
