#!/usr/bin/env python3
"""Steps of pipelines: time, utilisation, and how well they were predicted, first order and with K-FAC.

    python bench/pipeline_steps.py --data DATA --model bert-small --pp 4
    python bench/pipeline_steps.py --data DATA --model bert-base --pp 4 --engines gpu --steps 300 --drawn 250

For every schedule `plenum train --pp` runs as threads of one process (`threads`), as MPI processes (`mpi`), or as ranks
that share one GPU, a part of its multiprocessors each (`gpu`). A step's time is the median behind `--drawn`;
utilisation is the share of a step in which compute lanes computed, mean over ranks, and the error that of `--overlay`:
the schedule simulated with durations of earlier steps against five measured steps. K-FAC's work comes right behind the
data that it needs (`--kfac-every` steps apart): outside bubbles.
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


def command_of(options, engine, schedule, optimizer, directory):
    train = [options.plenum, "train", "--data", options.data, "--run", os.path.join(directory, "run"), "--model",
             options.model, "--steps", str(options.steps), "--global-batch", options.global_batch, "--pp",
             str(options.pp), "--schedule", schedule, "--micro-batches", str(options.micro_batches), "--seed", "1",
             "--eval-every", "100000", "--checkpoint-every", "100000", "--overlay",
             os.path.join(directory, "overlay.json"), "--trace-step", str(options.drawn), "--learning-rate", "1e-3",
             "--optimizer", optimizer, *options.train]
    if optimizer == "kfac":
        train += ["--kfac-every", str(options.kfac_every)]
    if engine == "gpu":
        return train + ["--ranks", str(options.pp), "--share-gpu", "--device", "cuda"]
    if engine == "threads":
        return train + ["--ranks", str(options.pp), "--threads", str(options.pp), "--device", "cpu"]
    return ["mpirun", "--bind-to", "core", "-np", str(options.pp)] + train + ["--threads", str(options.pp), "--device",
                                                                              "cpu"]


def utilisation(overlay, which):
    """Of the compute lanes, as predicted or as measured."""
    busy = {}
    for action in overlay["actions"]:
        if action["lane"] in COMPUTING:
            begin, end = action[which]
            busy[action["rank"]] = busy.get(action["rank"], 0) + end - begin
    return statistics.mean(busy.values()) / overlay[f"{which}_step_seconds"]


def measure(options, engine, schedule, optimizer):
    directory = tempfile.mkdtemp()
    try:
        allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        command = command_of(options, engine, schedule, optimizer, directory)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              env={**os.environ, **allow}, check=False)
        if done.returncode != 0:
            print(f"| {engine} | {schedule} | {optimizer} | failed: {done.stdout.strip().splitlines()[-1]} |", flush=True)
            return None
        with open(os.path.join(directory, "run", "metrics.jsonl"), encoding="ascii") as file:
            steps = [json.loads(line) for line in file][options.drawn:]
        with open(os.path.join(directory, "overlay.json"), encoding="utf-8") as file:
            overlay = json.load(file)
        error = re.search(r"mean error of ([0-9.]+) %", done.stdout)
        return {"seconds": statistics.median(step["seconds"] for step in steps),
                "tokens_per_second": statistics.median(step["tokens_per_second"] for step in steps),
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
    parser.add_argument("--optimizers", nargs="+", default=["lamb"])
    parser.add_argument("--kfac-every", type=int, default=4)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--drawn", type=int, default=8, help="the step that is laid over its prediction")
    parser.add_argument("--train", default="", type=str.split, help="more options of plenum train")
    parser.add_argument("--plenum", default="build/plenum")
    options = parser.parse_args()
    if options.steps < options.drawn + 5:
        sys.exit("five steps are compared with their prediction: give more --steps")
    print(f"{options.model}, {options.pp} stages, {options.micro_batches} micro-batches, {options.global_batch} a step")
    print("| engine | schedule | optimizer | step | tokens/s | utilisation, predicted | measured | error of a step |")
    print("|---|---|---|---|---|---|---|---|")
    for engine in options.engines:
        for schedule in options.schedules:
            for optimizer in options.optimizers:
                got = measure(options, engine, schedule, optimizer)
                if got is None:
                    continue
                print(f"| {engine} | {schedule} | {optimizer} | {got['seconds'] * 1e3:,.1f} ms "
                      f"| {got['tokens_per_second']:,.0f} | {100 * got['predicted']:.1f} % "
                      f"| {100 * got['measured']:.1f} % | {got['error']:.1f} % |", flush=True)


if __name__ == "__main__":
    main()
