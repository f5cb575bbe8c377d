"""Graphs for graphviz: its language, and its ``dot`` as another way to place the same boxes."""

from typing import Any

from tensorkit.errors import importing
from tensorkit.viz import layers
from tensorkit.viz.layers import GAP, ROW_GAP, Placed

INCH = 72.0


def source(labels: list[str], grounds: list[str], edges: list[tuple[int, int]]) -> str:
    """The graph in graphviz' language."""
    with importing("A graph in graphviz' language"):
        import graphviz

    digraph: Any = graphviz.Digraph(node_attr={"shape": "box", "style": "filled"})
    for number, (label, ground) in enumerate(zip(labels, grounds, strict=True), start=1):
        digraph.node(str(number), graphviz.escape(label).replace("\n", "\\n"), fillcolor=ground)
    for upper, lower in edges:
        digraph.edge(str(upper + 1), str(lower + 1))
    text: str = digraph.source
    return text


def place(sizes: list[tuple[float, float]], edges: list[tuple[int, int]]) -> Placed:
    """Boxes of these sizes placed by ``dot``, or as usual where it is not installed."""
    with importing("A graph whose boxes `dot` places"):
        import graphviz

    gaps = {"nodesep": str(GAP / INCH), "ranksep": str(ROW_GAP / INCH)}
    fixed = {"shape": "box", "fixedsize": "true", "label": ""}
    digraph: Any = graphviz.Digraph(
        graph_attr=gaps, node_attr=fixed, edge_attr={"arrowhead": "none"}
    )
    for number, (width, height) in enumerate(sizes):
        digraph.node(str(number), width=str(width / INCH), height=str(height / INCH))
    for upper, lower in edges:
        digraph.edge(str(upper), str(lower))
    try:
        return _read(digraph.pipe(format="plain", encoding="utf-8"), sizes, edges)
    except graphviz.ExecutableNotFound:
        return layers.place(sizes, edges)


def _read(plain: str, sizes: list[tuple[float, float]], edges: list[tuple[int, int]]) -> Placed:
    """Places from dot's output: inches, from the lower left corner."""
    lines = [line.split() for line in plain.splitlines()]
    height = float(lines[0][3]) * INCH

    def pixels(numbers: list[str]) -> list[tuple[float, float]]:
        pairs = zip(map(float, numbers[0::2]), map(float, numbers[1::2]), strict=True)
        return [(x * INCH, height - y * INCH) for x, y in pairs]

    middles = {int(line[1]): pixels(line[2:4])[0] for line in lines if line[0] == "node"}
    curves: dict[tuple[int, int], list[Any]] = {}
    for line in lines:
        if line[0] == "edge":
            first, *rest = pixels(line[4 : 4 + 2 * int(line[3])])
            thirds = zip(rest[0::3], rest[1::3], rest[2::3], strict=True)
            commands = [("M", *first), *(("C", *a, *b, *c) for a, b, c in thirds)]
            curves.setdefault((int(line[1]), int(line[2])), []).append(commands)
    tops = [(middles[n][0], middles[n][1] - high / 2) for n, (_, high) in enumerate(sizes)]
    return Placed(tops, [curves[edge].pop() for edge in edges])
