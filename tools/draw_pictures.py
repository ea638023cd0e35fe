"""Draws the pictures of docs/images that are not plenum's own: a batch without padding, a filled pipeline, a loss
curve and a terminal. Called by tools/draw_docs with two traces of plenum simulate: PLAIN FILLED."""
import csv
import html
import json
import math
import pathlib
import random
import re
import sys

from picture import IMAGES, ROOT, Picture, number

def draw_layouts():
    """Twelve sequences, the quantiles of Wikipedia's lengths, padded and end to end."""
    longest = 512
    counts = [int(line) for line in (ROOT / "tests/golden/wikipedia_512_histogram.txt").read_text().split()]
    every = [length for length, count in enumerate(counts) for _ in range(count // 1000)]
    lengths = [every[(2 * i + 1) * len(every) // 24] for i in range(12)]
    random.Random(3).shuffle(lengths)
    tokens = sum(lengths)
    picture = Picture(860, 262, "A batch of 12 sequences, padded and unpadded")
    width, height, pitch = 400, 12, 16
    scale = width / longest
    picture.text(16, 28, "Padded to the longest", "title")
    padded = longest * len(lengths)
    picture.text(16, 48, f"{padded:,} rows computed, {tokens:,} of them text ({100 * tokens / padded:.0f} %)", "quiet")
    for index, length in enumerate(lengths):
        y = 60 + index * pitch
        picture.box("a" if index % 2 == 0 else "b", 16, y, length * scale, height)
        picture.box("none", 16 + length * scale, y, (longest - length) * scale, height)
    left = 444
    picture.text(left, 28, "Unpadded: end to end", "title")
    picture.text(left, 48, f"{tokens:,} rows computed, all of them text", "quiet")
    position = 0
    for index, length in enumerate(lengths):
        while length > 0:
            row, column = divmod(position, longest)
            part = min(length, longest - column)
            picture.box("a" if index % 2 == 0 else "b", left + column * scale, 60 + row * pitch, part * scale, height)
            position += part
            length -= part
    rows = math.ceil(tokens / longest)
    picture.text(left, 60 + rows * pitch + 18, "Attention stays inside each sequence.", "quiet")
    picture.save("layouts.svg")


KINDS = {"forward": "fw", "backward": "bw", "curvature": "cu", "inversion": "iv", "precondition": "pc"}


def spans_of(trace):
    """(rank, kind, step, begin, end) of what computes, in milliseconds."""
    events = json.loads(pathlib.Path(trace).read_text())["traceEvents"]
    return [
        (
            event["pid"],
            KINDS[event["cat"]],
            event["args"]["step"],
            event["ts"] / 1000,
            (event["ts"] + event["dur"]) / 1000,
        )
        for event in events
        if event["ph"] == "X" and event["cat"] in KINDS
    ]


def joined(spans):
    """Neighbours of one kind as one span, but for forwards and backwards, which stay apart."""
    result = []
    for rank, kind, begin, end in sorted(spans, key=lambda span: (span[0], span[2])):
        last = result[-1] if result else None
        if last and last[0] == rank and last[1] == kind and kind not in ("fw", "bw") and begin - last[3] < 0.3:
            last[3] = end
        else:
            result.append([rank, kind, begin, end])
    return result


def draw_timeline(picture, spans, top, left, scale, window):
    height, pitch, ranks = 20, 25, 4
    for rank in range(ranks):
        picture.text(16, top + rank * pitch + 15, f"rank {rank}", "quiet")
        picture.box("none", left, top + rank * pitch, window * scale, height)
    inside = [
        (rank, kind, max(begin, 0), min(end, window))
        for rank, kind, begin, end in spans
        if end > 0 and begin < window
    ]
    for kind in KINDS.values():
        rectangles = [
            (left + begin * scale, top + rank * pitch, max((end - begin) * scale - 0.7, 0.4), height)
            for rank, span_kind, begin, end in joined(inside)
            if span_kind == kind
        ]
        if rectangles:
            picture.boxes(kind, rectangles)


def idle_share(spans, begin, end):
    """The share of a stretch of time in which ranks compute nothing."""
    busy = sum(max(0, min(last, end) - max(first, begin)) for _, _, first, last in spans)
    return 1 - busy / (4 * (end - begin))


def draw_filled_pipeline(plain_trace, filled_trace):
    """The same stretch of time before and after idle time is filled with K-FAC."""
    plain = spans_of(plain_trace)
    step = max(end for *_, end in plain)
    window = 3 * step
    repeated = [
        (rank, kind, begin + i * step, end + i * step) for i in range(3) for rank, kind, _, begin, end in plain
    ]
    filled = spans_of(filled_trace)
    starts = {}  # of steps, on rank 0
    for rank, kind, step_index, begin, _ in filled:
        if rank == 0 and kind == "fw":
            starts[step_index] = min(begin, starts.get(step_index, begin))
    first, last = 4, max(starts)
    longer = (starts[last] - starts[first]) / (last - first) / step - 1
    shifted = [(rank, kind, begin - starts[first], end - starts[first]) for rank, kind, _, begin, end in filled]
    picture = Picture(1000, 340, "A 1F1B pipeline before and after its idle time is filled with K-FAC")
    left = 72
    scale = (1000 - left - 16) / window
    idle = 100 * idle_share(repeated, 0, window)
    picture.text(16, 28, f"Before: 1F1B on 4 ranks, first-order; {idle:.1f} % idle", "title")
    draw_timeline(picture, repeated, 44, left, scale, window)
    idle = 100 * idle_share(shifted, 0, starts[last] - starts[first])
    title = f"After: K-FAC in the gaps; {idle:.1f} % idle, steps {100 * longer:.1f} % longer"
    picture.text(16, 176, title, "title")
    draw_timeline(picture, shifted, 192, left, scale, window)
    labels = [
        ("fw", "forward"),
        ("bw", "backward"),
        ("cu", "curvature"),
        ("iv", "inversion"),
        ("pc", "preconditioning"),
        ("none", "idle"),
    ]
    x = left
    for kind, label in labels:
        picture.box(kind, x, 308, 16, 14)
        picture.text(x + 22, 320, label)
        x += 46 + 7.6 * len(label)
    picture.text(984, 320, f"{window:,.0f} ms shown, simulated", "quiet end")
    picture.save("filled-pipeline.svg")


def draw_curve():
    rows = list(csv.DictReader(open(IMAGES / "data/curve.csv")))
    points = {"train": [], "held-out": []}
    for row in rows:
        points[row["split"]].append((int(row["step"]), float(row["loss"])))
    last = max(step for step, _ in points["train"])
    low = math.floor(min(loss for series in points.values() for _, loss in series))
    high = math.ceil(max(loss for series in points.values() for _, loss in series))
    picture = Picture(640, 300, "Loss over the steps of the quick start")
    left, top, right, bottom = 48, 44, 616, 258

    def to_x(step):
        return left + (right - left) * step / last

    def to_y(loss):
        return bottom - (bottom - top) * (loss - low) / (high - low)

    for loss in range(low, high + 1):
        picture.line([(left, to_y(loss)), (right, to_y(loss))], "grid")
        picture.text(left - 8, to_y(loss) + 4, str(loss), "quiet end")
    for part in range(5):
        picture.text(to_x(last * part / 4), bottom + 20, f"{last * part // 4:,}", "quiet middle")
    picture.text((left + right) / 2, bottom + 36, "step", "quiet middle")
    picture.text(16, 26, "Masked-token loss", "title")
    for split, kind in (("train", "train"), ("held-out", "held")):
        picture.line([(to_x(step), to_y(loss)) for step, loss in points[split]], kind)
    for step, loss in points["held-out"]:
        picture.parts.append(f'<circle class="dot" cx="{number(to_x(step))}" cy="{number(to_y(loss))}" r="3.2"/>')
    picture.text(right, top + 18, "training", "train end")
    picture.text(right, top + 38, "held-out", "held end")
    picture.save("loss-curve.svg")


TERMINAL_STYLE = """text{font-family:ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;font-size:13px;fill:#d5dbe1}
.page{fill:#161b22;stroke:#444c56}.prompt{fill:#fff;font-weight:700}.s1{font-weight:700}.s2{opacity:.7}.s31{fill:#ff8a80}.s32{fill:#5fd38a}
.s33{fill:#f0c265}.s34,.s94{fill:#7fb4ff}.s35{fill:#dba3ee}.s36{fill:#6fd6d0}.s90{fill:#9198a1}"""


def draw_terminal():
    """One screen; the window is dark in either mode, as terminals are."""
    lines = (IMAGES / "data/terminal.txt").read_text().rstrip("\n").split("\n")
    plain = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in lines]
    advance, pitch = 7.8, 19
    width = round(32 + advance * max(map(len, plain)))
    picture = Picture(width, 36 + pitch * len(lines), "plenum train in a terminal", TERMINAL_STYLE)
    for index, line in enumerate(lines):
        x, kind = 16.0, "prompt" if line.startswith("$ ") else ""
        for part in re.split(r"(\x1b\[[0-9;?]*[a-zA-Z])", line):
            if part.startswith("\x1b["):
                codes = part[2:-1].split(";") if part.endswith("m") else []
                kind = " ".join(f"s{int(code)}" for code in codes if code not in ("", "0") and "38" not in codes)
            elif part:
                length = advance * len(part)
                if part.strip():
                    picture.parts.append(
                        f'<text x="{number(x)}" y="{30 + pitch * index}" class="{kind}" xml:space="preserve" '
                        f'textLength="{number(length)}">{html.escape(part)}</text>'
                    )
                x += length
    picture.save("terminal.svg")


draw_layouts()
draw_filled_pipeline(sys.argv[1], sys.argv[2])
draw_curve()
draw_terminal()
