#!/usr/bin/env python3
"""K-FAC in the idle time of pipelines over a grid of models, GPUs, depths and micro-batch sizes, simulated.

    python bench/fill_grid.py [--profiles DIR] [--fresh] [--schedules 1f1b chimera] [--batches 8 32]

DIR holds layer profiles named bert-base-p100.csv and so on, as recipes/profiles does. For every
row `plenum simulate --fill kfac` places one refresh after the other. *Formula* is the published performance model:
(N T_curvature + T_inversion) / T_bubble steps from one refresh to the next, and its memory of a rank in GB:
activations, errors, two copies of factors and parameters. *Kept* is what filling keeps alive for work that waits.
With --fresh a row has the deferred work beside statistics of their own step (--fill-mode fresh): refresh, mean age,
the share of the rows that A and B cover, what is kept, and how much longer a step gets than with preconditioning
alone.
"""

import argparse
import csv
import json
import os
import subprocess
import sys

MODELS = {"bert-base": [(4, 3)], "bert-large": [(4, 6), (8, 3)]}  # depth, layers of a stage


def profile_row(path, batch):
    with open(path, encoding="ascii") as file:
        for row in csv.DictReader(file):
            if int(row["bs"]) == batch:
                return {key: float(value) for key, value in row.items()}
    sys.exit(f"{path} has no micro-batch of {batch}")


def simulate(options, path, schedule, depth, layers, batch, recompute, extra=()):
    command = [options.plenum, "simulate", "--schedule", schedule, "--stages", str(depth), "--micro-batches", str(depth),
               "--profile", path, "--layers-per-stage", str(layers), "--batch", str(batch), "--fill", "kfac", "--json"]
    command += [*extra, *(["--recompute"] if recompute else [])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"this failed: {' '.join(command)}\n{done.stderr}")
    result = json.loads(done.stdout)
    if result["violations"] != 0:
        sys.exit(f"the schedule is wrong: {result['first_violation']}")
    return result


def formula(row, schedule, depth, recompute):
    """Steps from refresh to refresh, for N = D micro-batches."""
    forward, backward = row["time_f"], row["time_b"] + (row["time_f"] if recompute else 0)
    chimera = schedule == "chimera"
    pipe = depth * forward + (2 * depth - 2) * backward if chimera else (2 * depth - 1) * (forward + backward)
    # A rank of Chimera holds two stages, and makes half of the inversions of each.
    work = depth * row["time_kron"] + row["time_inv"]
    return work / (pipe - depth * (forward + backward))


def formula_memory(row, schedule, depth, layers, recompute):
    """Of a rank, in GB."""
    activations = row["mem_act"] * (1 if recompute else depth)
    parameters = (4 if schedule == "chimera" else 2) * row["mem_param"]
    mebibytes = activations + row["mem_peak_err"] + depth * row["mem_save_err"] + 2 * row["mem_kron"] + parameters
    return layers * mebibytes * 1024 * 1024 / 1e9


def classic_row(options, path, row, schedule, depth, layers, batch, recompute):
    got = simulate(options, path, schedule, depth, layers, batch, recompute)
    return (f"| {formula(row, schedule, depth, recompute):.2f} | {got['refresh_steps']:.2f} "
            f"| {100 - 100 * got['unfilled_utilization']:.1f}, {100 - 100 * got['utilization']:.1f} % "
            f"| {got['preconditioning_percent']:.1f} % | {got['mean_age']:.1f} "
            f"| {formula_memory(row, schedule, depth, layers, recompute):.1f} GB | {got['kept_bytes'] / 1e9:.1f} GB |")


def fresh_row(options, path, row, schedule, depth, layers, batch, recompute):
    def cells(got):
        longer = max(0, 100 * (got["step_ms"] / got["preconditioned_step_ms"] - 1))
        return (f"{got['refresh_steps']:.2f}, {got['mean_age']:.1f}",
                f"{got['kept_micro_batches']:.1f}, {got['kept_bytes'] / 1e9:.1f} GB", f"{longer:.1f} %")

    deferred = simulate(options, path, schedule, depth, layers, batch, recompute)
    fresh = simulate(options, path, schedule, depth, layers, batch, recompute, ("--fill-mode", "fresh"))
    refresh, kept, longer = cells(fresh)
    shares = [fresh[key] for key in ("coverage_a", "coverage_b", "least_coverage")]
    covered = ", ".join(f"{100 * share:.0f}" for share in shares)
    return f"| {' | '.join(cells(deferred))} | {refresh} | {kept} | {longer} | {covered} % |"


def print_head(options):
    first = "| model, D = N | GPU | micro-batch | recompute | schedule "
    if options.fresh:
        of_each = ["every, age", "kept micro-batches, bytes", "step longer by"]
        names = ["deferred: " + of_each[0], *of_each[1:], "fresh: " + of_each[0], *of_each[1:], "covered: A, B, least"]
    else:
        names = ["formula", "refreshed every", "idle before, after", "preconditioning", "age", "formula, memory", "kept"]
    print(first + "".join(f"| {name} " for name in names) + "|")
    print("|---" * (5 + len(names)) + "|")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profiles", default="recipes/profiles")
    parser.add_argument("--schedules", nargs="+", default=["1f1b", "chimera"])
    parser.add_argument("--gpus", nargs="+", default=["p100", "v100", "rtx3090"])
    parser.add_argument("--batches", nargs="+", type=int, default=[8, 32])
    parser.add_argument("--fresh", action="store_true")
    parser.add_argument("--plenum", default="build/plenum")
    options = parser.parse_args()
    print_head(options)
    for model, shapes in MODELS.items():
        for depth, layers in shapes:
            for gpu in options.gpus:
                path = os.path.join(options.profiles, f"{model}-{gpu}.csv")
                for batch in options.batches:
                    row = profile_row(path, batch)
                    for recompute in (False, True):
                        for schedule in options.schedules:
                            make_row = fresh_row if options.fresh else classic_row
                            cells = make_row(options, path, row, schedule, depth, layers, batch, recompute)
                            print(f"| {model}, {depth} | {gpu} | {batch} | {'yes' if recompute else 'no'} | {schedule} "
                                  f"{cells}", flush=True)


if __name__ == "__main__":
    main()
