"""``viz.kernel``: who touches what in a launch, phase by phase.

What a warp touches together at one place of the source, the first time it comes there, is drawn
side by side.
"""

from collections import Counter, defaultdict

from tensorkit.cuda.kernel_run import PIECE, WARP, Access, asked
from tensorkit.cuda.kernels import Launch
from tensorkit.viz import words
from tensorkit.viz.drawing import INK, MARGIN, SERIES, SOFT, Canvas, text_width
from tensorkit.viz.picture import Explanation, Picture

MOST_PHASES, MOST_WARPS, GAP = 16, 4, 14.0
_BELOW = "In a box: a thread, and how many more; below it: the index. Dashed: more than is needed."


def kernel(launch: Launch) -> Picture:
    """Picture of the first block of a launch: which thread touches which element, and together.

    A column is a phase between two barriers. In it stands, for each place of the source, what each
    warp touches there at once: elements in the order of memory, in each the number of its thread. A
    full line around them means as few transactions as these elements allow, or no bank conflict; a
    dashed line means more. The first 16 phases and 4 warps are drawn, and the first time that a
    warp comes to a place; the picture says what it leaves out. A launch on a GPU has no log: it
    cannot be drawn.

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
        return Explanation(f"{name} ran on a GPU: not counted", "Try: with tk.cuda.simulate():")
    n_blocks, n_threads = (x * y for x, y in (launch.blocks, launch.threads))
    title = f"Kernel {name}, block 0 of {n_blocks}, {words.count(n_threads, 'thread')}"
    title += f", {MOST_PHASES} of {len(log.shown)} phases" * (len(log.shown) > MOST_PHASES)
    canvas, text, left = Canvas(title, _BELOW), [title], MARGIN
    for number, phase in enumerate(log.shown[:MOST_PHASES], start=1):
        text.append(f"phase {number} of {len(log.shown)}")
        right = canvas.text(left, canvas.top + 14, text[-1], 12.5, INK, bold=True)
        y = canvas.top + 38
        for _, times in sorted(phase.items()):
            turns, one = Counter(accesses[0].thread // WARP for accesses in times), times[0][0]
            heading = f"line {one.place[0]} {one.kind} {one.memory.name}"
            heading += f", the first of {max(turns.values())} times" * (len(times) > len(turns))
            heading += f", {MOST_WARPS} of {len(turns)} warps" * (len(turns) > MOST_WARPS)
            right, y = max(right, canvas.text(left, y, heading, 12)), y + 16
            for accesses in times[: min(len(turns), MOST_WARPS)]:
                end, verdict, cells = _draw(canvas, accesses, left, y)
                text += [f"  {heading}: {verdict}", f"    {cells}"]
                right, y = max(right, end), y + 60
            y += 12
        left = right + 26
    return Picture(title, canvas, "\n".join(text))


def _draw(canvas: Canvas, warp: list[Access], x: float, y: float) -> tuple[float, str, str]:
    """Draw what a warp touches together at a place; gives the right end, and words."""
    n_asked, one, n = asked(warp), warp[0], words.count(len(warp), "thread")
    n += f" of warp {one.thread // WARP}" * (one.memory.log.n_threads > WARP)
    size, elements = one.memory.host.itemsize, defaultdict[int, list[Access]](list)
    for access in warp:
        elements[access.address].append(access)
    least = 1 if one.address < 0 else -(-len(elements) * size // PIECE)
    is_good, asked_for = n_asked == least, f"{words.count(n_asked, 'transaction')} for {n}"
    verdict = f"coalesced, {asked_for}" if is_good else f"scattered, {asked_for}, not {least}"
    if one.address < 0:
        verdict = f"{n}, no bank conflict" if is_good else f"{n} want {n_asked} words of one bank"
    right, cells, end = canvas.text(x, y, verdict, 12, SOFT), list[str](), min(elements)
    for address, touching in sorted(elements.items()):
        first, *others = sorted(access.thread for access in touching)
        who = f"{first} + {len(others)}" if others else f"{first}"
        cells.append(f"{touching[0].text}: thread {who}{' more' * bool(others)}")
        x, end = x + GAP * (address > end), address + size
        fill, ink = SERIES[first % len(SERIES)]
        index = ", ".join(map(str, touching[0].element))
        width = 8 + max(text_width(who, 11), text_width(index, 10))
        canvas.rect(x, y + 8, width, 24, fill, INK, dash="" if is_good else "3 2")
        canvas.text(x + width / 2, y + 24, who, 11, ink, anchor="middle")
        canvas.text(x + width / 2, y + 44, index, 10, SOFT, anchor="middle")
        x += width
    return max(right, x), verdict, "; ".join(cells)
