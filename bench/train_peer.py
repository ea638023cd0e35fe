#!/usr/bin/env python3
"""Trains a BERT with Plenum and with PyTorch, padded and unpadded, on the same lengths, and prints the ratios.

    python bench/train_peer.py --histogram tests/golden/wikipedia_512_histogram.txt --models mini base --threads 2

Every measurement is a process of its own: its peak memory is its own, and none warms the other's caches. Rounds go
through all of them in turn, so that a slow minute of the machine hits each; the median of the rounds counts. A step
is forward, backward and AdamW on `--sequences` sequences, the same lengths for everyone, 15 % of the tokens masked,
hidden dropout 0.1; PyTorch's fused attention has no dropout, so Plenum runs once without and once with it. Plenum
also clips gradients, which PyTorch is spared. Both take a step's sequences at once, and making batches is not timed.
Tokens are real ones: padding does not count. Memory is the process's peak, and in brackets what of it came after the
program and its libraries were loaded. The rate of products is the better of Plenum's and PyTorch's best one.
"""

import argparse
import json
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time

SHAPES = {"tiny": (128, 2, 2), "mini": (256, 4, 4), "small": (512, 4, 8), "base": (768, 12, 12), "large": (1024, 24, 16)}
MAX_LENGTH = 512
VOCABULARY = 30522
MASK_RATE = 0.15
WARMUP_STEPS = 1


def draw_lengths(path, sequences, steps, seed):
    """One list of lengths per step, drawn from a file whose line i is the number of sequences of length i."""
    counts = [float(line) for line in open(path, encoding="ascii").read().split()]
    draw = random.Random(seed)
    lengths = range(1, len(counts) + 1)
    return [[max(3, n) for n in draw.choices(lengths, counts, k=sequences)] for _ in range(steps)]


def build_model(torch, name):
    """A BERT encoder with a masked-language head, written for speed: one product for queries, keys and values, the
    fused attention, and the head on masked positions alone."""
    functional = torch.nn.functional
    width, num_layers, heads = SHAPES[name]

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = torch.nn.Linear(width, 3 * width)
            self.project = torch.nn.Linear(width, width)
            self.widen = torch.nn.Linear(width, 4 * width)
            self.narrow = torch.nn.Linear(4 * width, width)
            self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(width, 1e-12) for _ in range(2))
            self.dropout = torch.nn.Dropout(0.1)

        def attend_padded(self, x, mask):
            batch = x.shape[0]
            q, k, v = self.qkv(x).view(batch, MAX_LENGTH, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            context = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
            return context.transpose(1, 2).reshape(batch, MAX_LENGTH, width)

        def attend_unpadded(self, x, lengths):
            parts = self.qkv(x).view(-1, 3, heads, width // heads).permute(1, 2, 0, 3)
            contexts = [
                functional.scaled_dot_product_attention(q[None], k[None], v[None])[0].transpose(0, 1).reshape(-1, width)
                for q, k, v in zip(*(part.split(lengths, 1) for part in parts))
            ]
            return torch.cat(contexts)

        def forward(self, x, lengths, mask):
            context = self.attend_unpadded(x, lengths) if mask is None else self.attend_padded(x, mask)
            x = self.norms[0](x + self.dropout(self.project(context)))
            return self.norms[1](x + self.dropout(self.narrow(functional.gelu(self.widen(x)))))

    class Bert(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(VOCABULARY, width)
            self.positions = torch.nn.Embedding(MAX_LENGTH, width)
            self.segments = torch.nn.Embedding(2, width)
            self.norm = torch.nn.LayerNorm(width, 1e-12)
            self.dropout = torch.nn.Dropout(0.1)
            self.layers = torch.nn.ModuleList(Layer() for _ in range(num_layers))
            self.transform = torch.nn.Linear(width, width)
            self.head_norm = torch.nn.LayerNorm(width, 1e-12)
            self.bias = torch.nn.Parameter(torch.zeros(VOCABULARY))

        def forward(self, batch):
            ids = batch["ids"]
            x = self.words(ids) + self.positions(batch["positions"]) + self.segments(torch.zeros_like(ids))
            x = self.dropout(self.norm(x))
            for layer in self.layers:
                x = layer(x, batch["lengths"], batch["mask"])
            masked = x.reshape(-1, width)[batch["masked"]]
            masked = self.head_norm(functional.gelu(self.transform(masked)))
            logits = functional.linear(masked, self.words.weight, self.bias)
            return functional.cross_entropy(logits, batch["labels"])

    return Bert()


def make_batch(torch, lengths, padded):
    if padded:
        ids = torch.randint(5, VOCABULARY, (len(lengths), MAX_LENGTH))
        real = torch.arange(MAX_LENGTH)[None] < torch.tensor(lengths)[:, None]
        masked = ((torch.rand(real.shape) < MASK_RATE) & real).view(-1).nonzero()[:, 0]
        positions = torch.arange(MAX_LENGTH).expand(len(lengths), MAX_LENGTH)
        mask = real[:, None, None, :]
    else:
        ids = torch.randint(5, VOCABULARY, (sum(lengths),))
        masked = (torch.rand(len(ids)) < MASK_RATE).nonzero()[:, 0]
        positions = torch.cat([torch.arange(n) for n in lengths])
        mask = None
    return {"ids": ids, "positions": positions, "lengths": lengths, "mask": mask, "masked": masked,
            "labels": ids.view(-1)[masked]}


def peak_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def best_product(torch, name):
    """FLOP/s of the fastest of the products of a layer."""
    width = SHAPES[name][0]
    rates = []
    for outputs, inputs in [(3 * width, width), (width, width), (4 * width, width), (width, 4 * width)]:
        x, weight = torch.randn(4096, inputs), torch.randn(outputs, inputs)
        for _ in range(10):
            begin = time.perf_counter()
            torch.nn.functional.linear(x, weight)
            rates.append(2 * 4096 * outputs * inputs / (time.perf_counter() - begin))
    return max(rates)


def run_torch(options):
    """The peer's process: trains, and prints its rate and peak memory."""
    import torch

    loaded = peak_bytes()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = build_model(torch, options.model)
    model.train()
    try:
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    except (RuntimeError, TypeError):  # versions that have none for CPUs
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    tokens, seconds = 0, 0.0
    for step, lengths in enumerate(json.load(open(options.lengths, encoding="ascii"))):
        batch = make_batch(torch, lengths, options.peer == "padded")
        begin = time.perf_counter()
        loss = model(batch)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        if step >= WARMUP_STEPS:
            tokens += sum(lengths)
            seconds += time.perf_counter() - begin
    peak = peak_bytes()
    print(json.dumps({"tokens_per_second": tokens / seconds, "peak_bytes": peak, "loaded_bytes": loaded,
                      "gemm_flops_per_second": best_product(torch, options.model), "torch": torch.__version__}))


def measure(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"this failed: {' '.join(command)}")
    return json.loads(done.stdout.splitlines()[-1])


def compare(options, name, lengths_path):
    peer = [sys.executable, __file__, "--lengths", lengths_path, "--threads", str(options.threads), "--model", name]
    ours = [options.bench, "--lengths", lengths_path, "--threads", str(options.threads), "--model", f"bert-{name}",
            "--micro-batch-tokens", str(options.sequences * MAX_LENGTH)]
    commands = {
        "PyTorch, padded": peer + ["--peer", "padded"],
        "PyTorch, unpadded": peer + ["--peer", "unpadded"],
        "Plenum": ours + ["--attention-dropout", "0"],
        "Plenum, attention dropout 0.1": ours + ["--attention-dropout", "0.1"],
    }
    results = {what: [] for what in commands}
    for _ in range(options.rounds):
        for what, command in commands.items():
            results[what].append(measure(command))
    rate = {what: statistics.median(r["tokens_per_second"] for r in rounds) for what, rounds in results.items()}
    peak = {what: max(r["peak_bytes"] for r in rounds) / 1e9 for what, rounds in results.items()}
    own = {what: max(r["peak_bytes"] - r["loaded_bytes"] for r in rounds) / 1e9 for what, rounds in results.items()}
    print(f"bert-{name}, {options.threads} threads, {options.sequences} sequences a step, "
          f"torch {results['PyTorch, padded'][0]['torch']}, median of {options.rounds}")
    print(f"  {'':32} {'real tokens/s':>14} {'of padded':>10} {'of unpadded':>12} {'peak memory (GB)':>17}")
    for what in commands:
        print(f"  {what:32} {rate[what]:14,.0f} {rate[what] / rate['PyTorch, padded']:9.2f}x "
              f"{rate[what] / rate['PyTorch, unpadded']:11.2f}x {peak[what]:8.2f} ({own[what]:.2f})")
    flops = statistics.median(r["flops_per_second"] for r in results["Plenum"])
    products = {who: max(r["gemm_flops_per_second"] for r in results[who]) for who in ["Plenum", "PyTorch, unpadded"]}
    print(f"  Plenum: {flops / 1e9:.0f} useful GFLOP/s, {100 * flops / max(products.values()):.0f} % of the rate of "
          f"products alone ({products['Plenum'] / 1e9:.0f}; PyTorch's {products['PyTorch, unpadded'] / 1e9:.0f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--histogram", help="line i: the number of sequences of length i")
    parser.add_argument("--models", nargs="+", default=["mini", "base"], choices=SHAPES)
    parser.add_argument("--sequences", type=int, default=16)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--bench", default="build/bench/bench_train")
    parser.add_argument("--peer", choices=["padded", "unpadded"], help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    parser.add_argument("--lengths", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        run_torch(options)
        return
    if not options.histogram:
        parser.error("--histogram FILE is needed")
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(draw_lengths(options.histogram, options.sequences, options.steps + WARMUP_STEPS, options.seed), file)
        file.flush()
        for name in options.models:
            compare(options, name, file.name)


if __name__ == "__main__":
    main()
