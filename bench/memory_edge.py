#!/usr/bin/env python3
"""Finds the largest --micro-batch-tokens with which a run survives under a memory limit, and the largest that
plenum plan says fits. The limit is a control group's (version 1, where plenum train does not see it and so does
not refuse by itself): the kernel ends what takes more. Needs root.

  python bench/memory_edge.py --plenum build/plenum --data data --cluster machine.toml --limit 1.2e9
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile

GROUPS = pathlib.Path("/sys/fs/cgroup/memory")


def survives(options, tokens, group):
    """Whether some steps with such micro-batches end well within the limit."""
    run = tempfile.mkdtemp()
    command = [options.plenum, "train", "--data", options.data, "--run", run, "--model", options.model,
               "--micro-batch-tokens", str(tokens), "--global-batch", options.global_batch, "--steps", str(options.steps),
               "--device", "cpu", "--attention-cost", "1", "--quiet", "--json"]
    enter = lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    done = subprocess.run(command, preexec_fn=enter, capture_output=True, text=True)
    shutil.rmtree(run, ignore_errors=True)
    if done.returncode not in (0, -9):
        raise SystemExit(f"{' '.join(command)}: {done.stderr}")
    return done.returncode == 0


def fits(options, tokens):
    """Whether the plan of one rank that computes nothing again fits."""
    command = [options.plenum, "plan", "--cluster", options.cluster, "--ranks", "1", "--data", options.data,
               "--model", options.model, "--micro-batch-tokens", str(tokens), "--global-batch", options.global_batch,
               "--memory-limit", str(int(options.limit)), "--json"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return False
    return any("recompute" not in plan["layout"] for plan in json.loads(done.stdout)["plans"])


def largest(least, most, holds, resolution):
    """The largest for which it holds, to the resolution; it must hold for least, and not for most."""
    while most - least > resolution:
        middle = (least + most) // 2
        least, most = (middle, most) if holds(middle) else (least, middle)
    return least


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--plenum", default="build/plenum")
    parser.add_argument("--data", required=True)
    parser.add_argument("--cluster", required=True)
    parser.add_argument("--model", default="bert-mini")
    parser.add_argument("--limit", type=float, required=True, help="bytes")
    parser.add_argument("--global-batch", default="16384tok")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--least", type=int, default=512)
    parser.add_argument("--most", type=int, default=16384)
    parser.add_argument("--resolution", type=int, default=64, help="tokens")
    options = parser.parse_args()
    planned = largest(options.least, options.most, lambda tokens: fits(options, tokens), options.resolution)
    group = GROUPS / f"plenum-edge-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(int(options.limit)))
        if not survives(options, planned, group):
            raise SystemExit(f"{planned} tokens fit as planned, but do not run")
        ran = largest(planned, options.most, lambda tokens: survives(options, tokens, group), options.resolution)
    finally:
        group.rmdir()
    print(f"{options.model} within {options.limit / 1e9:.2f} GB: {planned} tokens fit as planned, {ran} run: "
          f"{100 * (ran - planned) / ran:.1f} % are left")


if __name__ == "__main__":
    main()
