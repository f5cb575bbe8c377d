"""The texts of a picture: those that tensorkit wrote, and those that matplotlib wrote."""

import re
import xml.etree.ElementTree as ET
from typing import NamedTuple

from tensorkit.viz.drawing import text_width

SVG = "{http://www.w3.org/2000/svg}"


class DrawnText(NamedTuple):
    """A line of text: its left end, the line on which it stands, its width and size."""

    text: str
    x: float
    y: float
    width: float
    size: float


def texts(picture, *, ticks=True):
    """Every upright text; ``ticks`` are the numbers at axes."""
    root = ET.fromstring(picture.svg)
    found = []

    def walk(element):
        is_tick = re.match("[xy]tick_", element.get("id", ""))
        for child in element if ticks or not is_tick else ():
            if child.tag == f"{SVG}text" and "rotate(-90" not in child.get("transform", ""):
                found.append(_read(child))
            walk(child)

    walk(root)
    return found


def _read(element):
    text, style = element.text or "", element.get("style", "")
    x, y = (float(element.get(name, 0)) for name in "xy")
    if element.get("textLength"):
        return DrawnText(
            text, x, y, float(element.get("textLength")), float(element.get("font-size"))
        )
    size = float(re.search(r"([\d.]+)px", style)[1])
    bold, mono = re.search(r"bold|[67]00", style), "Mono" in style
    width = text_width(text, size, bold=bool(bold), mono=mono)
    moved = re.search(r"translate\(([\d.-]+) ([\d.-]+)\)", element.get("transform", ""))
    if moved:
        x, y = x + float(moved[1]), y + float(moved[2])
    anchor = re.search("text-anchor: (middle|end)", style)
    share = {"middle": 0.5, "end": 1.0}[anchor[1]] if anchor else 0.0
    return DrawnText(text, x - share * width, y, width, size)
