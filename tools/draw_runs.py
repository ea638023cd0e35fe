"""Draws the pictures of docs/pictures.md from traces of real runs. Called by tools/draw_runs with the folder that has
them; each picture shows runs one below the other over one time axis, with what was measured in their headings."""
import json
import pathlib
import sys

from picture import Picture

LEGEND = {
    "fw": "forward",
    "bw": "backward",
    "cu": "curvature",
    "iv": "inversion",
    "pc": "preconditioning",
    "up": "update",
    "co": "messages and sums over ranks",
    "none": "idle",
}
KINDS = {
    "forward": "fw",
    "recompute": "fw",
    "backward": "bw",
    "input gradient": "bw",
    "weight gradient": "bw",
    "curvature": "cu",
    "inversion": "iv",
    "precondition": "pc",
    "update": "up",
    "message": "co",
    "collective": "co",
}
LEFT, RIGHT, WIDTH = 72, 16, 1000
ROW, STRIP, PITCH = 20, 5, 32


class Run:
    """The actions of a step on every rank, in milliseconds from its beginning."""

    def __init__(self, path):
        events = json.loads(pathlib.Path(path).read_text())["traceEvents"]
        lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
        self.spans = []  # rank, lane, kind, begin, end
        for event in events:
            if event["ph"] == "X" and event["cat"] in KINDS:
                begin = event["ts"] / 1000
                lane = lanes[event["tid"]]
                self.spans.append((event["pid"], lane, KINDS[event["cat"]], begin, begin + event["dur"] / 1000))
        start = min(begin for _, lane, _, begin, _ in self.spans if lane == "compute")
        self.spans = [(rank, lane, kind, begin - start, end - start) for rank, lane, kind, begin, end in self.spans]
        self.ranks = sorted({span[0] for span in self.spans})
        self.length = max(end for *_, end in self.spans)
        self.kinds = {kind for *_, kind, _, _ in self.spans}

    def busy(self):
        """The share of the step in which ranks compute."""
        busy = sum(end - begin for _, lane, _, begin, end in self.spans if lane == "compute")
        return busy / (self.length * len(self.ranks))

    def draw(self, picture, top, scale):
        for row, rank in enumerate(self.ranks):
            y = top + row * PITCH
            picture.text(16, y + 15, f"rank {rank}", "quiet")
            picture.box("none", LEFT, y, self.length * scale, ROW)
            for kind in LEGEND:
                for is_compute, offset, height in ((True, 0, ROW), (False, ROW + 1, STRIP)):
                    boxes = [
                        (LEFT + max(begin, 0) * scale, y + offset, max((end - max(begin, 0)) * scale - 0.6, 0.4), height)
                        for of, lane, of_kind, begin, end in self.spans
                        if of == rank and of_kind == kind and (lane == "compute") == is_compute and end > 0
                    ]
                    if boxes:
                        picture.boxes(kind, boxes)
        return top + len(self.ranks) * PITCH


def draw(name, title, runs):
    """runs: (heading, Run) from above to below. Headings get what was measured."""
    height = 30 + sum(36 + len(run.ranks) * PITCH for _, run in runs) + 34
    picture = Picture(WIDTH, height, title)
    scale = (WIDTH - LEFT - RIGHT) / max(run.length for _, run in runs)
    y = 4
    for heading, run in runs:
        picture.text(16, y + 22, f"{heading}: {run.length:,.0f} ms, ranks compute {100 * run.busy():.0f} % of it", "title")
        y = run.draw(picture, y + 34, scale) + 2
    x = LEFT
    for kind, label in LEGEND.items():
        if kind == "none" or any(kind in run.kinds for _, run in runs):
            picture.box(kind, x, height - 26, 16, 14)
            picture.text(x + 22, height - 14, label)
            x += 36 + 7.0 * len(label)
    picture.save(name)


def draw_packs(name, plan_path):
    """Twelve packs of a plan, evenly drawn from all that it makes, each in one row."""
    plan = json.loads(pathlib.Path(plan_path).read_text())
    longest = plan["capacity"]
    packs = [pattern["lengths"] for pattern in plan["patterns"] for _ in range(pattern["count"])]
    packs.sort(key=lambda lengths: (len(lengths), lengths))
    shown = [packs[(2 * i + 1) * len(packs) // 24] for i in range(12)]
    filled = sum(map(sum, packs)) / (len(packs) * longest)
    picture = Picture(WIDTH, 62 + 18 * len(shown) + 10, "Packs of a real dataset")
    scale = (WIDTH - 32) / longest
    title = f"{len(packs):,} packs of {longest} tokens, {100 * filled:.1f} % full; twelve of them"
    picture.text(16, 26, title, "title")
    picture.text(16, 46, "Each block is a sequence. Attention stays inside it, and its positions begin at 0.", "quiet")
    for row, lengths in enumerate(shown):
        position = 0
        for index, length in enumerate(lengths):
            picture.box("ab"[index % 2], 16 + position * scale, 58 + row * 18, length * scale - 0.6, 14)
            position += length
        if position < longest:
            picture.box("none", 16 + position * scale, 58 + row * 18, (longest - position) * scale, 14)
    picture.save(name)


def main():
    folder = pathlib.Path(sys.argv[1])

    def runs(*headings):
        return [(heading, Run(folder / f"{trace}.json")) for heading, trace in headings]

    exchange = json.loads((folder / "exchange.json").read_text())

    def more(division):
        return f"{100 * (exchange[f'last_{division}_load'] - 1):.1f} %"

    draw("run-padding.svg", "A step padded and unpadded", runs(("Padded", "padded"), ("Unpadded", "unpadded")))
    draw(
        "run-exchange.svg",
        "A step of two ranks without and with exchange of sequences",
        runs((f"As they come, the busier rank {more('off')} above the mean", "as-they-come"),
             (f"Exchanged, the busier rank {more('on')} above the mean", "divided")),
    )
    draw(
        "run-filling.svg",
        "A step of a pipeline without and with filling",
        runs(("AdamW, idle time unused", "idle"), ("K-FAC, all of it in every step", "behind"),
             ("K-FAC, spread over idle time", "filled")),
    )
    draw_packs("run-packs.svg", folder / "plan.json")


main()
