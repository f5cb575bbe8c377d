"""``viz.kernel``: who touches what in a launch, phase by phase.

What one warp touches together at one place of the source, the first time it comes there, is drawn
side by side; the log has counted what it asked for.
"""

from collections import defaultdict
from typing import Any

from tensorkit.cuda.kernel_log import LOAD, PIECE, Access, Together
from tensorkit.cuda.kernels import Launch
from tensorkit.errors import message
from tensorkit.viz import words
from tensorkit.viz.drawing import INK, MARGIN, SERIES, SOFT, Canvas
from tensorkit.viz.picture import Explanation, Picture

MOST_PHASES, CELL, GAP = 3, 36.0, 14.0
_REPAIR = "viz.kernel(kernel[blocks, threads](...))"
_BELOW = "In a box: a thread, and how many more; below it: the index. Dashed: more than is needed."


def kernel(launch: Launch) -> Picture:
    """Picture of the first block of a launch: which thread touches which element, and together.

    A column is a phase between two barriers. In it stands, for each place of the source, what the
    first warp touches there at once: elements in the order of memory, in each the number of its
    thread. A full line around them means as few transactions as these elements allow, or no bank
    conflict; a dashed line means more. A launch on a GPU has no log: it cannot be drawn.

    >>> from tensorkit import cuda, viz
    >>> @cuda.kernel
    ... def double(x, n):
    ...     i = cuda.grid(1)
    ...     if i < n:
    ...         x[i] = 2.0 * x[i]
    >>> with cuda.simulate():
    ...     viz.kernel(double[1, 4](tk.ones(3, device="cuda"), 3))
    Kernel double, block 0 of 1, 4 threads
    phase 1
      line 5 reads x: coalesced, 1 transaction for 3 threads
        x[0]: thread 0; x[1]: thread 1; x[2]: thread 2
      line 5 writes x: coalesced, 1 transaction for 3 threads
        x[0]: thread 0; x[1]: thread 1; x[2]: thread 2
    """
    if not isinstance(launch, Launch):
        raise TypeError(message("viz.kernel() wants what a launch gives", repair=_REPAIR))
    log, name = launch.log, launch.kernel.__name__
    if log is None:
        why = "A GPU does not tell what its threads touch. Try: with tk.cuda.simulate():"
        return Explanation(f"Kernel {name} ran on a GPU", why)
    n_blocks, n_threads = (x * y for x, y in (launch.blocks, launch.threads))
    title = f"Kernel {name}, block 0 of {n_blocks}, {words.count(n_threads, 'thread')}"
    shown, n_more = log.shown[:MOST_PHASES], len(log.shown[MOST_PHASES:])
    most = {1: 16, 2: 8}.get(len(shown), 6)
    canvas, text, left = Canvas(title, _BELOW), [title], MARGIN
    for number, phase in enumerate(shown, start=1):
        text.append(f"phase {number}")
        canvas.text(left, canvas.top + 14, text[-1], 12.5, INK, bold=True)
        y, ends, sites = canvas.top + 26, [left], defaultdict[Any, list[Together]](list)
        for group in phase:
            one = group.accesses[0]
            sites[one.line, one.kind != LOAD, one.place].append(group)
        for _, groups in sorted(sites.items()):
            end, said = _draw(canvas, groups, most, (left, y))
            ends, text, y = [*ends, end], [*text, *said], y + 88
        left = max(ends) + 26
    if n_more:
        text.append(f"and {n_more} more phases")
        canvas.text(MARGIN, canvas.low + 22, text[-1], 12, SOFT)
    return Picture(title, canvas, "\n".join(text))


def _draw(
    canvas: Canvas, groups: list[Together], most: int, at: tuple[float, float]
) -> tuple[float, list[str]]:
    """Draw what a warp touches together at a place, the first time; gives the right end, and words.

    ``groups``: all that the warps of the block touch there in a phase.
    """
    (left, y), shown = at, min(groups, key=lambda group: (group.turn, group.accesses[0].thread))
    asked, one, elements = shown.asked, shown.accesses[0], defaultdict[int, list[Access]](list)
    for access in shown.accesses:
        elements[access.address].append(access)
    n, memory = words.count(len(shown.accesses), "thread"), one.memory
    least = -(-len(elements) * memory.host.itemsize // PIECE)
    if memory.is_shared:
        is_good, verdict = asked == 1, f"{n}, no bank conflict"
        verdict = verdict if is_good else f"{n} want {asked} words of one bank"
    else:
        is_good, verdict = asked == least, f"{words.count(asked, 'transaction')} for {n}"
        verdict = f"coalesced, {verdict}" if is_good else f"scattered, {verdict}, not {least}"
    heading = f"line {one.line} {one.kind} {memory.name}"
    heading += ", the first time" if any(group.turn for group in groups) else ""
    right = max(
        canvas.text(left, y + 12, heading, 12), canvas.text(left, y + 28, verdict, 12, SOFT)
    )
    cells, x, end = list[str](), left, min(elements)
    for address, touching in sorted(elements.items())[:most]:
        first, *others = sorted(access.thread for access in touching)
        cells.append(f"{touching[0].text}: thread {first}")
        x, end = x + GAP * (address > end), address + memory.host.itemsize
        fill, ink = SERIES[first % len(SERIES)]
        canvas.rect(x, y + 36, CELL, 24, fill, INK, dash="" if is_good else "3 2")
        who, index = f"{first}", ", ".join(map(str, touching[0].element))
        if others:
            who += f" + {len(others)}"
            cells[-1] += f" and {len(others)} more"
        canvas.text(x + CELL / 2, y + 52, who, 11, ink, anchor="middle")
        canvas.text(x + CELL / 2, y + 72, index, 10, SOFT, anchor="middle")
        x += CELL
    if len(elements) > most:
        cells.append("…")
        x = canvas.text(x + 8, y + 52, cells[-1], 12, SOFT)
    return max(right, x), [f"  {heading}: {verdict}", f"    {'; '.join(cells)}"]
