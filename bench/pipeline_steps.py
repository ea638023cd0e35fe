#!/usr/bin/env python3
"""Steps of pipelines: time, utilisation, and how well they were predicted, first order, with K-FAC and with SOAP.

    python bench/pipeline_steps.py --data DATA --model bert-small --pp 4
    python bench/pipeline_steps.py --data DATA --model bert-base --pp 4 --engines gpu --steps 300 --drawn 250

For every schedule `plenum train --pp` runs as threads of one process (`threads`), as MPI processes (`mpi`), or as ranks
that share one GPU, a part of its multiprocessors each (`gpu`):

    lamb            first order
    kfac            K-FAC in the bubbles of the pipeline (`--fill deferred`)
    kfac-fresh      the same with statistics of their own step (`--fill fresh`)
    kfac-outside    K-FAC right behind the data that it needs, as often as `kfac` before it (or `--every` steps apart)
    soap            SOAP's bases in the bubbles (`--fill deferred`; on CPUs)
    soap-outside    SOAP's bases in the update, as often as `soap` before it (or `--every` steps apart)

A step's time is the mean over a cycle of the schedule, and of these the median, behind the steps that are compared with
their prediction. Utilisation is the share of a step in which compute lanes computed, mean over ranks. The error is that
of `--overlay`: the schedule simulated with durations of earlier steps against five measured steps. Forward and backward
are means over the passes of the drawn step; they show whether filling slows down other ranks, which share memory or
power. Age of inverses or bases when used (mean), and what waiting work takes on a rank, are what the run itself says.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

COMPUTING = {"compute"}
PASSES = {"forward": ["forward"], "backward": ["backward", "input gradient", "weight gradient"]}
COMPARED = 5


def command_of(options, engine, schedule, optimizer, refresh, directory):
    train = [options.plenum, "train", "--data", options.data, "--run", os.path.join(directory, "run"), "--model",
             options.model, "--steps", str(options.steps), "--global-batch", options.global_batch, "--pp",
             str(options.pp), "--schedule", schedule, "--micro-batches", str(options.micro_batches), "--seed", "1",
             "--eval-every", "100000", "--checkpoint-every", "100000", "--overlay",
             os.path.join(directory, "overlay.json"), "--trace-step", str(options.drawn), "--learning-rate", "1e-3",
             "--optimizer", optimizer.partition("-")[0], *options.train]
    threads = str(options.pp * options.threads_per_rank)
    name, _, how = optimizer.partition("-")
    if how == "outside":
        train += [f"--{name}-every", str(refresh)]
    if how == "fresh":
        train += ["--fill", "fresh"]
    if engine == "gpu":
        return train + ["--ranks", str(options.pp), "--share-gpu", "--device", "cuda"]
    if engine == "threads":
        return train + ["--ranks", str(options.pp), "--threads", threads, "--device", "cpu"]
    return ["mpirun", *options.mpirun, "-np", str(options.pp), *train, "--threads", threads, "--device", "cpu"]


def utilisation(overlay, which):
    """Of the compute lanes, as predicted or as measured."""
    busy = {}
    for action in overlay["actions"]:
        if action["lane"] in COMPUTING:
            begin, end = action[which]
            busy[action["rank"]] = busy.get(action["rank"], 0) + end - begin
    return statistics.mean(busy.values()) / overlay[f"{which}_step_seconds"]


def pass_ms(overlay, name):
    """Mean time of the forwards or backwards of the drawn step."""
    computed = [action for action in overlay["actions"] if action["lane"] in COMPUTING]
    seconds = sum(action["measured"][1] - action["measured"][0] for action in computed
                  if action["category"] in PASSES[name])
    return 1e3 * seconds / sum(action["category"] == "forward" for action in computed)


def cycle_length(directory):
    """Steps of the schedule that a run keeps; 1 if it keeps none."""
    path = os.path.join(directory, "run", "schedule.txt")
    if not os.path.exists(path):
        return 1
    with open(path, encoding="utf-8") as file:
        return max(line.count("|") + 1 for line in file if " compute:" in line)


def measure(options, engine, schedule, optimizer, refresh):
    directory = tempfile.mkdtemp()
    try:
        allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = command_of(options, engine, schedule, optimizer, refresh, directory)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, **allow}, check=False)
        if done.returncode != 0:
            print(f"| {engine} | {schedule} | {optimizer} | failed: {done.stdout.strip().splitlines()[-1]} |", flush=True)
            return None
        with open(os.path.join(directory, "run", "metrics.jsonl"), encoding="ascii") as file:
            steps = [json.loads(line) for line in file][options.drawn + COMPARED:]
        with open(os.path.join(directory, "overlay.json"), encoding="utf-8") as file:
            overlay = json.load(file)
        if options.overlays:
            os.makedirs(options.overlays, exist_ok=True)
            shutil.copy(os.path.join(directory, "overlay.json"),
                        os.path.join(options.overlays, f"{engine}-{schedule}-{optimizer}.json"))
        error = re.search(r"mean error of ([0-9.]+) %", done.stdout)
        age = re.search(r"(?:inverses|bases) ([0-9.]+) steps old", done.stdout)
        kept = re.search(r"what waits takes (.*?) more on a rank", done.stdout)
        period = refresh if optimizer.endswith("-outside") else cycle_length(directory)
        outside = re.search(r"outside bubbles, every ([0-9]+) steps", done.stdout)  # there was no room
        period = int(outside.group(1)) if outside else period
        cycles = [steps[i:i + period] for i in range(0, len(steps) - period + 1, period)]
        seconds = statistics.median(statistics.fmean(step["seconds"] for step in cycle) for cycle in cycles)
        return {"seconds": seconds, "refresh": period,
                "tokens_per_second": statistics.fmean(step["real_tokens"] for step in steps) / seconds,
                "forward": pass_ms(overlay, "forward"), "backward": pass_ms(overlay, "backward"),
                "age": age.group(1) if age else "", "kept": kept.group(1) if kept else "",
                "predicted": utilisation(overlay, "predicted"), "measured": utilisation(overlay, "measured"),
                "error": float(error.group(1)) if error else float("nan")}
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True)
    parser.add_argument("--model", default="bert-small")
    parser.add_argument("--pp", type=int, default=4)
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--global-batch", default="8192tok")
    parser.add_argument("--schedules", nargs="+", default=["gpipe", "1f1b", "chimera", "zb-h1"])
    parser.add_argument("--engines", nargs="+", default=["threads", "mpi"], choices=["threads", "mpi", "gpu"])
    parser.add_argument("--optimizers", nargs="+", default=["lamb", "kfac", "kfac-outside"])
    parser.add_argument("--every", type=int, default=4,
                        help="steps between refreshes outside bubbles, where the same in bubbles was not run before")
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--drawn", type=int, default=8, help="the step that is laid over its prediction")
    parser.add_argument("--threads-per-rank", type=int, default=1, help="on CPUs")
    parser.add_argument("--mpirun", default=["--bind-to", "core"], type=str.split, help="options of mpirun")
    parser.add_argument("--train", default="", type=str.split, help="more options of plenum train")
    parser.add_argument("--plenum", default="build/plenum")
    parser.add_argument("--overlays", help="keep there what --overlay wrote: every action, predicted and measured")
    options = parser.parse_args()
    if options.steps < options.drawn + COMPARED + 8:
        sys.exit("five steps are compared with their prediction, and others timed behind them: give more --steps")
    print(f"{options.model}, {options.pp} stages, {options.micro_batches} micro-batches, {options.global_batch} a step")
    print("| engine | schedule | optimizer | refresh | age | kept | step | beside the first | tokens/s "
          "| utilisation, predicted | measured | error of a step | forward | backward |")
    print("|---" * 14 + "|")
    for engine in options.engines:
        for schedule in options.schedules:
            first, refresh = None, {"kfac": options.every, "soap": options.every}
            for optimizer in options.optimizers:
                family = optimizer.partition("-")[0]
                got = measure(options, engine, schedule, optimizer, refresh.get(family, 1))
                if got is None:
                    continue
                first = first or got
                if optimizer in refresh:
                    refresh[optimizer] = got["refresh"]
                print(f"| {engine} | {schedule} | {optimizer} | {got['refresh'] if family in refresh else ''} "
                      f"| {got['age']} | {got['kept']} | {got['seconds'] * 1e3:,.1f} ms | {100 * (got['seconds'] / first['seconds'] - 1):+.1f} % "
                      f"| {got['tokens_per_second']:,.0f} | {100 * got['predicted']:.1f} % "
                      f"| {100 * got['measured']:.1f} % | {got['error']:.1f} % | {got['forward']:.2f} ms "
                      f"| {got['backward']:.2f} ms |", flush=True)


if __name__ == "__main__":
    main()
