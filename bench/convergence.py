#!/usr/bin/env python3
"""How fast optimizers converge, with equal tuning effort for each.

For every optimizer runs `plenum train` on a grid of settings, as many points for each, takes the point with the
lowest held-out loss at the end, repeats that with several seeds, and writes

    OUT/table.md     held-out loss at 20, 40, 50, 60, 80 and 100 % of the steps, steps to the loss that the
                     reference (LAMB) reaches at its end and the time that the run itself took to it (sum of its
                     steps, without evaluations), gap between held-out and training loss, tokens/s
    OUT/runs.jsonl   a line for every run: its options, its losses at ten points, its speed

A study may be stopped and started again: what is complete is not repeated, what is not resumes from its checkpoint.

    python3 bench/convergence.py --plenum build/plenum --data study-ds --out study --model bert-mini \\
        --steps 2000 --global-batch 32768tok --optimizers adamw,lamb,muon
    python3 bench/convergence.py ... --tuning-steps 600 # the grid by shorter runs, then the best with all steps
    python3 bench/convergence.py ... --budget 540     # seconds; then again, until it says that all is done
    python3 bench/convergence.py ... --grid grid.json # other settings than those below

A grid is {"name": {"fixed": {"optimizer": "lamb"}, "grid": {"learning-rate": [6e-3, 1.2e-2]}}}: options of plenum train
without dashes before them; all combinations of the lists are run. {"like": "kfac", "fixed": {"schedule": "filled.txt"}}
takes the best point of another grid and other options besides, untuned: for what differs in how it runs alone.
"""

import argparse
import concurrent.futures
import itertools
import json
import math
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import threading
import time

SHARES = (20, 40, 50, 60, 80, 100)

WARMUPS = ["0.1dur", "0.28dur"]
GRIDS = {
    "adamw": {"fixed": {"optimizer": "adamw"}, "grid": {"learning-rate": [5e-4, 1e-3, 2e-3], "warmup": WARMUPS}},
    "lamb": {"fixed": {"optimizer": "lamb"}, "grid": {"learning-rate": [6e-3, 1.2e-2, 2.4e-2], "warmup": WARMUPS}},
    "muon": {"fixed": {"optimizer": "muon"}, "grid": {"learning-rate": [1.5e-3, 3e-3, 6e-3], "warmup": WARMUPS}},
    "soap": {"fixed": {"optimizer": "soap"}, "grid": {"learning-rate": [1.5e-3, 3e-3, 6e-3], "warmup": WARMUPS}},
    "kfac": {
        "fixed": {"optimizer": "kfac", "kfac-base": "lamb", "kfac-every": 1, "warmup": "0.1dur"},
        "grid": {"learning-rate": [6e-3, 1.2e-2, 2.4e-2], "kfac-damping": [1e-3, 1e-2]},
    },
    "kfac-stale": {
        "fixed": {"optimizer": "kfac", "kfac-base": "lamb", "kfac-every": 4, "warmup": "0.1dur"},
        "grid": {"learning-rate": [6e-3, 1.2e-2, 2.4e-2], "kfac-damping": [1e-3, 1e-2]},
    },
}


def read_lines(path):
    """Whole JSON lines of a file that may still be written, or may have been cut."""
    if not path.exists():
        return []
    lines = []
    for line in path.read_text().splitlines():
        try:
            lines.append(json.loads(line))
        except json.JSONDecodeError:
            break
    return lines


class Deadline:
    def __init__(self, seconds):
        self.end = time.monotonic() + seconds if seconds else math.inf

    def left(self):
        return self.end - time.monotonic()


class Run:
    """One training run: an optimizer, its options, how long, a seed."""

    def __init__(self, study, optimizer, options, steps, seed):
        self.study, self.optimizer, self.options, self.steps, self.seed = study, optimizer, options, steps, seed
        point = ",".join(f"{name}={value}" for name, value in sorted(options.items()) if name != "optimizer")
        self.directory = study.out / "runs" / optimizer / f"{point or 'defaults'},steps={steps},seed={seed}".replace("/", "-")

    @property
    def summary_path(self):
        return self.directory.with_name(self.directory.name + ".json")

    def summary(self):
        """What the run gave; None where it is not complete."""
        if not self.summary_path.exists():
            return None
        summary = json.loads(self.summary_path.read_text())
        return summary if summary["study"] == self.study.fingerprint() else None

    def command(self, seconds):
        arguments = self.study.arguments
        options = {
            "data": arguments.data,
            "run": self.directory,
            "model": arguments.model,
            "steps": self.steps,
            "global-batch": arguments.global_batch,
            "eval-every": "0.1dur",
            "eval-sequences": arguments.eval_sequences,
            "seed": self.seed,
            "keep": 1,
            **self.options,
        }
        command = [arguments.plenum, "train"]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        if math.isfinite(seconds):
            command += ["--stop-after", f"{max(1, int(seconds))}s"]
        return command + shlex.split(arguments.train_arguments)

    def advance(self, deadline):
        """Trains until the run is complete or time is up. Throws what the program says if it fails."""
        if self.summary() is not None or deadline.left() < self.study.arguments.least_seconds:
            return
        self.directory.parent.mkdir(parents=True, exist_ok=True)
        begin = time.monotonic()
        log = self.directory.with_name(self.directory.name + ".log")
        with log.open("a") as output:
            command = self.command(deadline.left() - 0.5 * self.study.arguments.least_seconds)
            output.write(shlex.join(command) + "\n")
            output.flush()
            code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False).returncode
        lines = log.read_text().strip().splitlines()
        has_diverged = any("in a row were skipped" in line for line in lines[-5:])
        if code != 0 and not has_diverged:
            raise RuntimeError(f"{log}: exit code {code}: {lines[-1] if lines else ''}")
        self.conclude(has_diverged)
        self.study.report(self, time.monotonic() - begin)

    def conclude(self, has_diverged):
        losses = self.held_out()
        if not has_diverged and (not losses or losses[-1][0] < self.steps):
            return
        steps = read_lines(self.directory / "metrics.jsonl")
        last = [step["mlm_loss"] for step in steps[-max(1, len(steps) // 20) :] if step["mlm_loss"] is not None]
        seconds = dict(zip((step["step"] for step in steps), itertools.accumulate(step["seconds"] for step in steps)))
        speeds = [step["tokens_per_second"] for step in steps[len(steps) // 10 :]]
        summary = {
            "study": self.study.fingerprint(),
            "optimizer": self.optimizer,
            "options": self.options,
            "steps": self.steps,
            "seed": self.seed,
            "diverged": has_diverged,
            "held_out": losses,
            "step_seconds": [[step, seconds[step]] for step, _ in losses if step in seconds],
            "end_loss": losses[-1][1] if losses and not has_diverged else None,
            "train_loss": statistics.fmean(last) if last else None,
            "skipped_steps": sum(step["skipped"] for step in steps),
            "tokens": sum(step["real_tokens"] for step in steps),
            "tokens_per_second": statistics.median(speeds) if speeds else None,
            "wall_seconds": steps[-1]["wall_seconds"] if steps else None,
        }
        self.summary_path.write_text(json.dumps(summary) + "\n")
        if not self.study.arguments.keep_checkpoints:
            shutil.rmtree(self.directory / "checkpoints", ignore_errors=True)

    def held_out(self):
        """[step, loss], the last of each step: a run that resumed may have evaluated one twice."""
        by_step = {line["step"]: line["mlm_loss"] for line in read_lines(self.directory / "evaluations.jsonl")}
        return sorted([step, loss] for step, loss in by_step.items() if loss is not None)


def points_of(grid):
    if "like" in grid:
        return
    names = list(grid.get("grid", {}))
    for values in itertools.product(*(grid["grid"][name] for name in names)):
        yield {**grid.get("fixed", {}), **dict(zip(names, values))}


def value_at(curve, step):
    """Linear between the points of a curve; None before the first."""
    for (left, before), (right, after) in zip(curve, curve[1:]):
        if left <= step <= right:
            return before + (after - before) * (step - left) / (right - left)
    return next((value for at, value in curve if at == step), None)


def steps_to(curve, target):
    """The first step at which a curve, linear between its points, is as low as the target."""
    if curve and curve[0][1] <= target:
        return curve[0][0]
    for (left, before), (right, after) in zip(curve, curve[1:]):
        if after <= target:
            return left + (before - target) / (before - after) * (right - left)
    return None


def mean_curve(curves):
    steps = sorted(set.intersection(*(set(step for step, _ in curve) for curve in curves)))
    return [[step, statistics.fmean(dict(map(tuple, curve))[step] for curve in curves)] for step in steps]


class Study:
    def __init__(self, arguments):
        self.arguments = arguments
        self.out = arguments.out
        grids = json.loads(arguments.grid.read_text()) if arguments.grid else GRIDS
        missing = [name for name in arguments.optimizers if name not in grids]
        if missing:
            raise SystemExit(f"no grid for {', '.join(missing)}; there are {', '.join(grids)}")
        self.points = {name: list(points_of(grids[name])) for name in arguments.optimizers}
        self.like = {name: (grids[name]["like"], grids[name].get("fixed", {})) for name in arguments.optimizers
                     if "like" in grids[name]}
        wrong = [name for name, (other, _) in self.like.items() if not self.points.get(other)]
        if wrong:
            raise SystemExit(f"{', '.join(wrong)} must be like one of --optimizers that has points")
        counts = {name: len(points) for name, points in self.points.items() if points}
        if len(set(counts.values())) > 1 and not arguments.unequal:
            raise SystemExit(f"tuning effort must be equal: {counts} points; --unequal allows it")
        self.deadline = Deadline(arguments.budget)
        self.lock = threading.Lock()
        self.failures = []

    def fingerprint(self):
        """What two runs must share to be compared."""
        arguments = self.arguments
        return {"data": arguments.data.resolve().name, "model": arguments.model,
                "global_batch": arguments.global_batch, "train_arguments": arguments.train_arguments}

    def report(self, run, seconds):
        summary = run.summary()
        state = "time is up" if summary is None else f"{summary['end_loss'] or math.nan:.4f}"
        with self.lock:
            print(f"{run.directory.relative_to(self.out)}: {state} ({seconds:.0f} s)", flush=True)

    def advance(self, runs):
        with concurrent.futures.ThreadPoolExecutor(self.arguments.jobs) as pool:
            for done in concurrent.futures.as_completed([pool.submit(run.advance, self.deadline) for run in runs]):
                if done.exception() is not None:
                    self.failures.append(str(done.exception()))
                    print(f"error: {self.failures[-1]}", file=sys.stderr, flush=True)

    def grid_runs(self, name):
        steps = self.arguments.tuning_steps or self.arguments.steps
        return [Run(self, name, options, steps, self.arguments.seed) for options in self.points[name]]

    def best(self, name):
        """The options of the run of the grid with the lowest loss at the end; None until all are complete, or if all
        diverged."""
        if name in self.like:
            other, fixed = self.like[name]
            options = self.best(other)
            return None if options is None else {**options, **fixed}
        runs = self.grid_runs(name)
        summaries = [run.summary() for run in runs]
        if None in summaries:
            return None
        ended = [(summary["end_loss"], index) for index, summary in enumerate(summaries) if summary["end_loss"]]
        return runs[min(ended)[1]].options if ended else None

    def seed_runs(self, name):
        best = self.best(name)
        if best is None:
            return []
        seeds = range(self.arguments.seed, self.arguments.seed + self.arguments.seeds)
        return [Run(self, name, best, self.arguments.steps, seed) for seed in seeds]

    def run(self):
        self.out.mkdir(parents=True, exist_ok=True)
        self.advance([run for name in self.points for run in self.grid_runs(name)])
        self.advance([run for name in self.points for run in self.seed_runs(name)])
        runs = {run.directory: run for name in self.points for run in self.grid_runs(name) + self.seed_runs(name)}
        summaries = [run.summary() for run in runs.values()]
        with (self.out / "runs.jsonl").open("w") as lines:
            for summary in summaries:
                if summary is not None:
                    lines.write(json.dumps(summary) + "\n")
        num_open = sum(summary is None for summary in summaries)
        text = self.table()
        (self.out / "table.md").write_text(text)
        print(text)
        print(f"{num_open} of {len(summaries)} runs are not complete: start again" if num_open else "all runs are done")
        return 2 if self.failures else 1 if num_open else 0

    def curves(self, name):
        summaries = [run.summary() for run in self.seed_runs(name)]
        return [summary for summary in summaries if summary is not None and not summary["diverged"]]

    def table(self):
        arguments = self.arguments
        reference = self.curves(arguments.reference) if arguments.reference in self.points else []
        target = statistics.fmean(summary["end_loss"] for summary in reference) if reference else None
        lines = [
            f"{arguments.model}, {arguments.steps} steps of {arguments.global_batch}; held-out loss, mean of the seeds "
            f"(and their range at the end); the best of {len(next(filter(None, self.points.values())))} points for each "
            f"optimizer{f', by runs of {arguments.tuning_steps} steps' if arguments.tuning_steps else ''}. Training loss "
            "is the mean of the last 5 % of the steps, with dropout.",
            "",
            "| optimizer | " + " | ".join(f"{share} %" for share in SHARES)
            + f" | seeds | steps to {arguments.reference}'s end{f' ({target:.4f})' if target else ''}"
            + " | seconds to it | held-out - training | tokens/s |",
            "|---" * (len(SHARES) + 6) + "|",
        ]
        for name in self.points:
            lines.append(self.row(name, target))
        lines += ["", "| optimizer | point | loss at the end |", "|---|---|---|"]
        for name in self.points:
            for run in self.grid_runs(name):
                summary = run.summary()
                loss = "not complete" if summary is None else "diverged" if summary["diverged"] else None
                point = ", ".join(f"{key} {value}" for key, value in run.options.items() if key != "optimizer")
                lines.append(f"| {name} | {point} | {loss or format(summary['end_loss'], '.4f')} |")
        return "\n".join(lines) + "\n"

    def row(self, name, target):
        best, summaries = self.best(name), self.curves(name)
        if not summaries:
            return f"| {name} | " + " | ".join("" for _ in range(len(SHARES) + 5)) + " |"
        curve = mean_curve([summary["held_out"] for summary in summaries])
        losses = [value_at(curve, self.arguments.steps * share / 100) for share in SHARES]
        cells = [f"{loss:.4f}" if loss is not None else "" for loss in losses]
        ends = [summary["end_loss"] for summary in summaries]
        if len(ends) > 1:
            cells[-1] += f" ({min(ends):.4f} to {max(ends):.4f})"
        reached = steps_to(curve, target) if target else None
        share = f"{reached:.0f} ({100 * reached / self.arguments.steps:.0f} %)" if reached else "never"
        curves = [summary["step_seconds"] for summary in summaries]
        seconds = value_at([[0, 0.0], *mean_curve(curves)], reached) if reached else None
        gap = statistics.fmean(summary["end_loss"] - summary["train_loss"] for summary in summaries)
        speed = statistics.median(summary["tokens_per_second"] for summary in summaries)
        point = ", ".join(f"{key} {value}" for key, value in best.items() if key != "optimizer")
        return f"| {name}: {point} | " + " | ".join(
            cells + [str(len(summaries)), share if target else "", f"{seconds:.0f}" if seconds else "", f"{gap:+.3f}",
                     f"{speed:,.0f}"]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plenum", required=True, help="the program")
    parser.add_argument("--data", type=pathlib.Path, required=True, help="a dataset of plenum prepare --holdout")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="where runs and results go")
    parser.add_argument("--model", default="bert-mini")
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--tuning-steps", type=int, default=0, help="of the grid's runs; 0: as many")
    parser.add_argument("--global-batch", default="32768tok")
    parser.add_argument("--optimizers", type=lambda text: text.split(","), default=["adamw", "lamb", "muon"],
                        help="names of grids")
    parser.add_argument("--grid", type=pathlib.Path, help="JSON; the grids above if not given")
    parser.add_argument("--unequal", action="store_true", help="allow more points for one than for another")
    parser.add_argument("--reference", default="lamb", help="whose end loss others are timed to")
    parser.add_argument("--seed", type=int, default=1, help="of the grid")
    parser.add_argument("--seeds", type=int, default=3, help="runs of the best point, with this and the next seeds")
    parser.add_argument("--eval-sequences", type=int, default=0, help="held-out sequences; 0: all")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--budget", type=float, default=0, help="seconds, after which runs stop with a checkpoint")
    parser.add_argument("--least-seconds", type=float, default=10, help="left of the budget that a run is begun with")
    parser.add_argument("--train-arguments", default="", help="more options of plenum train, such as '--device cuda'")
    parser.add_argument("--keep-checkpoints", action="store_true", help="of complete runs, which need none")
    sys.exit(Study(parser.parse_args()).run())


if __name__ == "__main__":
    main()
