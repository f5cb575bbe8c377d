"""The one exercise of chapter 00, Start: within two minutes a learner sees how checks answer."""

from course.exercises.ch00_start import celsius
