"""The templates of the class's page and of a submission's note: they escape what they are given."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from course.notebook.report import prose

TEMPLATES = Path(__file__).with_name("templates")


@cache
def template(name: str) -> Any:
    """The template in the file of this name."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["prose"] = lambda text: Markup(prose(text))  # it escapes the text
    environment.filters["number"] = "{:g}".format
    return environment.get_template(name)
