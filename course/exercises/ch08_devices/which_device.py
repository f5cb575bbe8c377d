"""The exercise which-device: on which device a result is."""

from __future__ import annotations

from typing import Any

import tensorkit as tk
from course.exercises.ch08_devices.some_device import some_cuda
from course.notebook.exercise import Prediction, exercise


@exercise("which-device", points=2, difficulty=2, minutes=5)
class WhichDevice(Prediction):
    """Predict the device

    Write each answer as a text, `"cpu"` or `"cuda:0"`: the first GPU is number 0.

    One is done for you:

    ```python
    tk.zeros(2, device="cuda").device      # "cuda:0": it was made there
    ```
    """

    name = "places"
    ask = 'Replace each ... by "cpu" or "cuda:0".'
    form = r"cpu|cuda:\d+"
    questions = {
        "tk.zeros(2).device": "Without `device=` a tensor is made on the CPU.",
        "tk.zeros(2).to('cuda').cpu().device": "Each step gives a tensor on the named device.",
        "tk.zeros_like(tk.zeros(2, device='cuda')).device": (
            "The functions that end in `_like` take the device as well."
        ),
        "(tk.zeros(2, device='cuda') + 1).device": "A Python number has no device.",
        "(tk.zeros(2, device='cuda') * tk.tensor(3.0)).device": (
            "`tk.tensor(3.0)` is a CPU tensor without dimensions: it counts as a number, and may "
            "meet a GPU tensor."
        ),
        "tk.zeros(2, device='cuda').sum().device": (
            "A result stays where it was computed, also if it is a single number."
        ),
        "tk.tensor(tk.zeros(2, device='cuda').tolist()).device": (
            "A Python list lies in the memory of the host, and so does what is made of it."
        ),
    }
    hints = (
        "A result is where its operands are. Which lines leave the GPU on purpose?",
        "`.cpu()`, `.tolist()` and `.item()` bring numbers to the host; nothing else does.",
    )
    usual_mistakes = {
        "small results come back": (
            {
                "tk.zeros(2, device='cuda').sum().device": "cpu",
                "(tk.zeros(2, device='cuda') * tk.tensor(3.0)).device": "cpu",
            },
            "Nothing comes back by itself, however small. A result stays where it was computed.",
        ),
        "new tensors are on the CPU": (
            {
                "tk.zeros_like(tk.zeros(2, device='cuda')).device": "cpu",
                "(tk.zeros(2, device='cuda') + 1).device": "cpu",
            },
            "`zeros_like` copies the device of its tensor, and arithmetic stays on the device. "
            "Only the functions without a tensor to look at begin on the CPU.",
        ),
        "once on the GPU, always": (
            {
                "tk.zeros(2).to('cuda').cpu().device": "cuda:0",
                "tk.tensor(tk.zeros(2, device='cuda').tolist()).device": "cuda:0",
            },
            "`.cpu()` and `.tolist()` bring the numbers to the host, and what is made of them is "
            "there.",
        ),
    }

    def evaluate(self, expression: str) -> Any:
        with tk.device("cpu"), some_cuda():  # whatever the default device is
            return super().evaluate(expression)

    def observe(self, value: tk.device) -> str:
        return str(value)

    def run(self, answer: Any, *args: Any) -> Any:
        """The prediction; `"cuda"`, `"CUDA:0"` and a `tk.device` say the same as `"cuda:0"`."""
        place = super().run(answer, *args)
        if isinstance(place, str | tk.device):
            place = str(place).strip().lower()
        return "cuda:0" if place == "cuda" else place
