"""``viz.kernel``: who touches what in a launch, phase by phase.

First ``_strips`` turns the log of block 0 into plain data: what one warp touches together at one
place of the source, the first time it comes there. Then that is drawn and written.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from tensorkit.cuda.kernel_log import PIECE, WARP, Log
from tensorkit.cuda.kernel_source import LOAD, STORE
from tensorkit.cuda.kernels import Launch
from tensorkit.viz import words
from tensorkit.viz.drawing import INK, MARGIN, SERIES, SOFT, Canvas
from tensorkit.viz.picture import Explanation, Picture

MOST_PHASES, CELL, GAP = 3, 36.0, 14.0
_BELOW = "In a box: a thread, and how many more; below it: the index. Dashed: more than is needed."
_DOES = {LOAD: "reads", STORE: "writes"}


class Strip(NamedTuple):
    """What a warp touches together: elements in the order of memory, with their threads."""

    line: int
    heading: str
    verdict: str
    is_good: bool
    cells: list[tuple[str, str, bool]]  # element, threads, whether it lies beside the one before


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
        raise TypeError(
            f"viz.kernel() wants a launch, not {type(launch).__name__}. "
            "Try: viz.kernel(kernel[blocks, threads](...)), with what the launch gives"
        )
    log, name = launch.log, launch.kernel.__name__
    if log is None:
        why = "A GPU does not tell what its threads touch. Try: with tk.cuda.simulate():"
        return Explanation(f"Kernel {name} ran on a GPU", why)
    n_blocks, n_threads = (x * y for x, y in (launch.blocks, launch.threads))
    title = f"Kernel {name}, block 0 of {n_blocks}, {words.count(n_threads, 'thread')}"
    phases = np.unique(log.shown[0])
    shown = phases[:MOST_PHASES]
    most = (16, 8, 6)[len(shown) - 1] if len(shown) else 0
    canvas, text, left = Canvas(title, _BELOW), [title], MARGIN
    for number, phase in enumerate(shown, start=1):
        text.append(f"phase {number}")
        canvas.text(left, canvas.top + 14, text[-1], 12.5, INK, bold=True)
        y, right = canvas.top + 26, left
        for strip in _strips(log, log.shown[:, log.shown[0] == phase], most):
            right, y = max(right, _draw(canvas, strip, left, y)), y + 88
            pairs = "; ".join(
                f"{cell}: thread {who}" if who else cell for cell, who, _ in strip.cells
            )
            text += [f"  {strip.heading}: {strip.verdict}", f"    {pairs}"]
        left = right + 26
    if len(phases) > MOST_PHASES:
        text.append(f"and {len(phases) - MOST_PHASES} more phases")
        canvas.text(MARGIN, canvas.low + 22, text[-1], 12, SOFT)
    return Picture(title, canvas, "\n".join(text))


def _strips(log: Log, rows: Any, most: int) -> Iterator[Strip]:
    sites = log.source.sites
    for number in sorted(np.unique(rows[2]), key=lambda it: (sites[it].line, sites[it].kind)):
        site, own = sites[number], rows[:, rows[2] == number]
        own = own[:, own[1] // WARP == own[1].min() // WARP]
        again = ", the first time" if own[5].any() else ""
        own = own[:, own[5] == 0]
        host, places, asked = log.hosts[site.array], np.unique(own[4]), int(own[6, 0])
        n, least = words.count(own.shape[1], "thread"), -(-len(places) * host.itemsize // PIECE)
        if site.array in log.source.shared:
            is_good, verdict = asked == 1, f"{n}, no bank conflict"
            verdict = verdict if is_good else f"{n} want {asked} words of one bank"
        else:
            is_good, verdict = asked == least, f"{words.count(asked, 'transaction')} for {n}"
            verdict = f"coalesced, {verdict}" if is_good else f"scattered, {verdict}, not {least}"
        cells, before = [], places[0]
        for place in places[:most]:
            mine = own[:, own[4] == place]
            index = ", ".join(str(it) for it in np.unravel_index(mine[3, 0], host.shape))
            threads = sorted(mine[1])
            who = f"{threads[0]}" + f" and {len(threads) - 1} more" * (len(threads) > 1)
            cells.append((f"{site.array}[{index}]", who, place - before <= host.itemsize))
            before = place
        if len(places) > most:
            cells.append(("…", "", True))
        heading = f"line {site.line} {_DOES.get(site.kind, 'adds to')} {site.array}{again}"
        yield Strip(site.line, heading, verdict, is_good, cells)


def _draw(canvas: Canvas, strip: Strip, left: float, y: float) -> float:
    """Draw a strip; gives its right end."""
    right = canvas.text(left, y + 12, strip.heading, 12)
    right = max(right, canvas.text(left, y + 28, strip.verdict, 12, SOFT))
    x = left
    for cell, who, is_beside in strip.cells:
        x += 0 if is_beside else GAP
        if not who:
            x = canvas.text(x + 8, y + 52, cell, 12, SOFT)
            continue
        fill, ink = SERIES[int(who.split()[0]) % len(SERIES)]
        number = who.replace(" and ", " + ").removesuffix(" more")
        canvas.rect(x, y + 36, CELL, 24, fill, INK, dash="" if strip.is_good else "3 2")
        canvas.text(x + CELL / 2, y + 52, number, 11, ink, anchor="middle")
        canvas.text(x + CELL / 2, y + 72, cell.partition("[")[2][:-1], 10, SOFT, anchor="middle")
        x += CELL
    return max(right, x)
