"""Chapter 00. RIGHT: other right answers, which test_right_answers tries."""

from __future__ import annotations


def celsius_by_ninths(fahrenheit):
    return (fahrenheit - 32.0) * 5 / 9


def celsius_step_by_step(fahrenheit):
    result = fahrenheit.clone()
    result -= 32
    return result.div(1.8)


RIGHT = [
    ("celsius", celsius_by_ninths),
    ("celsius", celsius_step_by_step),
]
