"""``viz.kernel``: who touches what in a launch, phase by phase.

What one warp touches together at one place of the source, the first time it comes there, is drawn
side by side.
"""

from collections import defaultdict

from tensorkit.cuda.kernel_run import PIECE, Access, asked
from tensorkit.cuda.kernels import Launch
from tensorkit.viz import words
from tensorkit.viz.drawing import INK, MARGIN, SERIES, SOFT, Canvas
from tensorkit.viz.picture import Explanation, Picture

MOST_PHASES, CELL, GAP = 3, 36.0, 14.0
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
    phase 1 of 1
      line 5 reads x: coalesced, 1 transaction for 3 threads
        x[0]: thread 0; x[1]: thread 1; x[2]: thread 2
      line 5 writes x: coalesced, 1 transaction for 3 threads
        x[0]: thread 0; x[1]: thread 1; x[2]: thread 2
    """
    if not isinstance(launch, Launch):
        raise TypeError("viz.kernel() wants a launch. Try: viz.kernel(k[blocks, threads](...))")
    log, name = launch.log, launch.kernel.__name__
    if log is None:
        why = "A GPU does not tell what its threads touch. Try: with tk.cuda.simulate():"
        return Explanation(f"Kernel {name} ran on a GPU", why)
    n_blocks, n_threads = (x * y for x, y in (launch.blocks, launch.threads))
    title = f"Kernel {name}, block 0 of {n_blocks}, {words.count(n_threads, 'thread')}"
    shown = log.shown[:MOST_PHASES]
    most = {1: 16, 2: 8}.get(len(shown), 6)
    canvas, text, left = Canvas(title, _BELOW), [title], MARGIN
    for number, phase in enumerate(shown, start=1):
        text.append(f"phase {number} of {len(log.shown)}")
        canvas.text(left, canvas.top + 14, text[-1], 12.5, INK, bold=True)
        y, right = canvas.top + 26, left
        for _, times in sorted(phase.items()):
            more = f", the first of {len(times)} times" if len(times) > 1 else ""
            end, said = _draw(canvas, times[0], more, most, (left, y))
            text, y, right = [*text, *said], y + 88, max(right, end)
        left = right + 26
    return Picture(title, canvas, "\n".join(text))


def _draw(
    canvas: Canvas, accesses: list[Access], more: str, most: int, at: tuple[float, float]
) -> tuple[float, list[str]]:
    """Draw what a warp touches together at a place; gives the right end, and words."""
    (x, y), n_asked, one = at, asked(accesses), accesses[0]
    heading = f"line {one.place[0]} {one.kind} {one.memory.name}{more}"
    n, size = words.count(len(accesses), "thread"), one.memory.host.itemsize
    elements = defaultdict[int, list[Access]](list)
    for access in accesses:
        elements[access.address].append(access)
    least = 1 if one.address < 0 else -(-len(elements) * size // PIECE)
    is_good, asked_for = n_asked == least, f"{words.count(n_asked, 'transaction')} for {n}"
    verdict = f"coalesced, {asked_for}" if is_good else f"scattered, {asked_for}, not {least}"
    if one.address < 0:
        verdict = f"{n}, no bank conflict" if is_good else f"{n} want {n_asked} words of one bank"
    right = max(canvas.text(x, y + 12, heading, 12), canvas.text(x, y + 28, verdict, 12, SOFT))
    cells, end = list[str](), min(elements)
    for address, touching in sorted(elements.items())[:most]:
        first, *others = sorted(access.thread for access in touching)
        who = f"{first} + {len(others)}" if others else f"{first}"
        others_too = f" and {len(others)} more" if others else ""
        cells.append(f"{touching[0].text}: thread {first}{others_too}")
        x, end = x + GAP * (address > end), address + size
        fill, ink = SERIES[first % len(SERIES)]
        canvas.rect(x, y + 36, CELL, 24, fill, INK, dash="" if is_good else "3 2")
        canvas.text(x + CELL / 2, y + 52, who, 11, ink, anchor="middle")
        index = ", ".join(map(str, touching[0].element))
        canvas.text(x + CELL / 2, y + 72, index, 10, SOFT, anchor="middle")
        x += CELL
    if len(elements) > most:
        cells.append("…")
        x = canvas.text(x + 8, y + 52, cells[-1], 12, SOFT)
    return max(right, x), [f"  {heading}: {verdict}", f"    {'; '.join(cells)}"]
