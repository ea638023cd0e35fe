#!/usr/bin/env python3
"""Weak scaling of training on the cores of one machine, one core for each rank, and PyTorch's DistributedDataParallel.

    python bench/ranks_peer.py --ranks 1 2 4 8 16 --peer-ranks 2 4 8

Every rank trains on as many sequences a step, of Wikipedia's lengths, whatever the number of ranks. `copies` are
so many runs of one rank that know nothing of each other, bound to a core each: what the machine can do at most.
`local` are ranks that are threads of one process, `mpi` processes under mpirun. PyTorch runs the same model, unpadded,
over gloo, a process bound to each core. A rate is that of the median step, real tokens; of copies the sum. `in step` is
what the copies would reach if each waited for the slowest after every step, as ranks must: below 100 % where the
machine's cores are not alike from step to step. The first steps do not count. Plenum's attention has dropout and its
gradients are clipped; PyTorch is spared both.
"""

import argparse
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

from random_words import prepare
from train_peer import VOCABULARY, build_model, draw_lengths, make_batch

WARMUP_STEPS = 2


def run(command, **more):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"this failed: {' '.join(command)}\n{done.stdout}")
    return done.stdout


def train_command(options, data, run_directory, num_ranks, *more):
    return [options.plenum, "train", "--data", data, "--run", run_directory, "--model", f"bert-{options.model}",
            "--steps", str(options.steps + WARMUP_STEPS), "--global-batch", str(options.sequences * num_ranks),
            "--order", "sequences", "--device", "cpu", "--quiet", "--learning-rate", "1e-4", "--seed", "1",
            "--checkpoint-every", "1000", *options.train, *more]


def rates_of(run_directory):
    """Of the steps that count."""
    with open(os.path.join(run_directory, "metrics.jsonl"), encoding="ascii") as file:
        steps = [json.loads(line) for line in file][WARMUP_STEPS:]
    return [step["tokens_per_second"] for step in steps]


def rate_of(run_directory):
    return statistics.median(rates_of(run_directory))


def copies(options, data, directory, num_ranks):
    runs = [os.path.join(directory, f"copy-{i}") for i in range(num_ranks)]
    started = [
        subprocess.Popen(["taskset", "-c", str(i)] + train_command(options, data, path, 1, "--threads", "1"),
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for i, path in enumerate(runs)
    ]
    if any(process.wait() != 0 for process in started):
        sys.exit("a copy failed")
    by_step = list(zip(*map(rates_of, runs)))  # all copies train on the same
    in_step = statistics.median(len(runs) * min(rates) for rates in by_step)
    return sum(rate_of(path) for path in runs), in_step


def local(options, data, directory, num_ranks):
    path = os.path.join(directory, "local")
    run(["taskset", "-c", f"0-{num_ranks - 1}"] +
        train_command(options, data, path, num_ranks, "--ranks", str(num_ranks), "--threads", str(num_ranks)))
    return rate_of(path)


def mpi(options, data, directory, num_ranks):
    path = os.path.join(directory, "mpi")
    allow = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    run(["mpirun", "--bind-to", "core", "-np", str(num_ranks)] +
        train_command(options, data, path, num_ranks, "--threads", str(num_ranks)), env={**os.environ, **allow})
    return rate_of(path)


def train_peer(options):
    """A process of the peer: its rank and the others' address are in the environment."""
    import torch

    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    torch.set_num_threads(1)
    torch.manual_seed(0)
    torch.distributed.init_process_group("gloo")
    model = torch.nn.parallel.DistributedDataParallel(build_model(torch, options.model))
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    rates = []
    for step, lengths in enumerate(draw_lengths(options.histogram, options.sequences * size, options.peer_steps + 1, 1)):
        own = lengths[rank * options.sequences:(rank + 1) * options.sequences]
        batch = make_batch(torch, own, False)
        torch.distributed.barrier()
        begin = time.perf_counter()
        model(batch).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        torch.distributed.barrier()
        if step >= 1:
            rates.append(sum(lengths) / (time.perf_counter() - begin))
    if rank == 0:
        print(json.dumps({"tokens_per_second": statistics.median(rates), "torch": torch.__version__}))


def peer(options, num_ranks):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, __file__, "--peer", "--model", options.model, "--sequences", str(options.sequences),
               "--peer-steps", str(options.peer_steps), "--histogram", options.histogram]
    started = [
        subprocess.Popen(["taskset", "-c", str(rank)] + command, stdout=subprocess.PIPE, text=True,
                         env={**os.environ, "RANK": str(rank), "WORLD_SIZE": str(num_ranks), "OMP_NUM_THREADS": "1",
                              "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        for rank in range(num_ranks)
    ]
    outputs = [process.communicate()[0] for process in started]
    if any(process.returncode != 0 for process in started):
        sys.exit("PyTorch failed")
    return json.loads(outputs[0].splitlines()[-1])["tokens_per_second"]


def compare(options, data, directory, num_ranks):
    rates = {}
    for engine in options.engines:
        measured = []
        for turn in range(options.rounds):
            room = os.path.join(directory, f"{engine}-{num_ranks}-{turn}")
            os.mkdir(room)
            measured.append({"copies": copies, "local": local, "mpi": mpi}[engine](options, data, room, num_ranks))
            shutil.rmtree(room)
        if engine == "copies":
            rates["copies"], rates["copies in step"] = max(measured)
        else:
            rates[engine] = max(measured)
    if num_ranks in options.peer_ranks:
        rates["PyTorch DDP"] = peer(options, num_ranks)
    first = next(iter(rates.values()))
    line = ", ".join(f"{engine} {rate:,.0f} ({100 * rate / first:.1f} %)" for engine, rate in rates.items())
    print(f"bert-{options.model}, {num_ranks} ranks x {options.sequences} sequences {' '.join(options.train)}: {line}",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histogram", default="tests/golden/wikipedia_512_histogram.txt")
    parser.add_argument("--model", default="mini")
    parser.add_argument("--ranks", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--peer-ranks", nargs="*", type=int, default=[])
    parser.add_argument("--engines", nargs="+", default=["copies", "local", "mpi"])
    parser.add_argument("--sequences", type=int, default=16, help="of a step, for each rank")
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--peer-steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=1, help="the best counts")
    parser.add_argument("--train", default="", type=str.split, help='more options, such as "--bucket-bytes 5000000"')
    parser.add_argument("--plenum", default="build/plenum")
    parser.add_argument("--peer", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        train_peer(options)
        return
    with tempfile.TemporaryDirectory() as directory:
        data = prepare(options.plenum, options.histogram, options.sequences * max(options.ranks) * 4, directory)
        for num_ranks in options.ranks:
            compare(options, data, directory, num_ranks)


if __name__ == "__main__":
    main()
