"""``viz.kernel``: who touches what in a launch, phase by phase.

What one warp touches together at one place of the source, the first time it comes there, is drawn
side by side; the log has counted what it asked for.
"""

from typing import Any

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
        rows, y, ends = log.shown[:, log.shown[0] == phase], canvas.top + 26, [left]
        for site in sorted({*rows[2]}, key=lambda it: log.source.sites[it][::2]):
            end, said = _draw(canvas, log, rows[:, rows[2] == site], most, (left, y))
            ends, text, y = [*ends, end], [*text, *said], y + 88
        left = max(ends) + 26
    if len(phases) > MOST_PHASES:
        text.append(f"and {len(phases) - MOST_PHASES} more phases")
        canvas.text(MARGIN, canvas.low + 22, text[-1], 12, SOFT)
    return Picture(title, canvas, "\n".join(text))


def _draw(
    canvas: Canvas, log: Log, rows: Any, most: int, at: tuple[float, float]
) -> tuple[float, list[str]]:
    """Draw what the first warp of these accesses at one site touches together.

    Gives the right end, and the same in words.
    """
    site, (left, y) = log.source.sites[rows[2, 0]], at
    rows = rows[:, rows[1] // WARP == rows[1].min() // WARP]
    own = rows[:, rows[5] == 0]
    host, places, asked = log.hosts[site.array], np.unique(own[4]), int(own[6, 0])
    n, least = words.count(own.shape[1], "thread"), -(-len(places) * host.itemsize // PIECE)
    if site.array in log.source.shared:
        is_good, verdict = asked == 1, f"{n}, no bank conflict"
        verdict = verdict if is_good else f"{n} want {asked} words of one bank"
    else:
        is_good, verdict = asked == least, f"{words.count(asked, 'transaction')} for {n}"
        verdict = f"coalesced, {verdict}" if is_good else f"scattered, {verdict}, not {least}"
    heading = f"line {site.line} {_DOES.get(site.kind, 'adds to')} {site.array}"
    heading += ", the first time" if rows[5].any() else ""
    right = max(
        canvas.text(left, y + 12, heading, 12), canvas.text(left, y + 28, verdict, 12, SOFT)
    )
    cells, x = list[str](), left
    for place, before in zip(places[:most], [places[0], *places], strict=False):
        threads = sorted(own[1, own[4] == place])
        number = own[3, own[4] == place][0]
        index = ", ".join(str(it) for it in np.unravel_index(number, host.shape))
        more = [f"{len(threads) - 1} more"] * (len(threads) > 1)
        cells.append(f"{site.array}[{index}]: thread {' and '.join([f'{threads[0]}', *more])}")
        x += GAP * (place - before > host.itemsize)
        fill, ink = SERIES[threads[0] % len(SERIES)]
        canvas.rect(x, y + 36, CELL, 24, fill, INK, dash="" if is_good else "3 2")
        who = f"{threads[0]} + {len(threads) - 1}" if more else f"{threads[0]}"
        canvas.text(x + CELL / 2, y + 52, who, 11, ink, anchor="middle")
        canvas.text(x + CELL / 2, y + 72, index, 10, SOFT, anchor="middle")
        x += CELL
    if len(places) > most:
        cells.append("…")
        x = canvas.text(x + 8, y + 52, cells[-1], 12, SOFT)
    return max(right, x), [f"  {heading}: {verdict}", f"    {'; '.join(cells)}"]
