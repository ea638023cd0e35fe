#!/usr/bin/env python3
"""Trains a BERT on a GPU with Plenum and with PyTorch, on the same lengths, and prints one table with the ratios.

    python bench/gpu/train_peer.py --histogram tests/golden/wikipedia_512_histogram.txt --bench bench_gpu_train \
        --model bert-large bert-base --layouts unpadded padded packed --attention-dropout 0.1 --losses losses

A step is forward, backward and AdamW in bf16 with fp32 weights: --tokens tokens, 15 % of them masked, next-sentence
prediction, hidden dropout 0.1. Tokens are real ones: padding does not count. Plenum's first run writes down the
lengths of its steps and PyTorch trains on those. Runs take turns, Plenum first and last, each a process of its own;
all of Plenum's are --steps long with the loader running beside them, those with attention dropout and of other
layouts run once. Each size of a step after the first, for the first model, and each model after the first run once,
with the first of the peers. A GPU under load lowers its clock to stay within its power, so what counts is the rate of
a long run: the table has the clock and the power of each run's last seconds.

With --losses a second table sets the losses of the layouts side by side. Steps are of packs, so that all layouts train
on the same sequences with the same masks, and their losses differ by rounding alone, and by what training makes of it.
Tokens are random: what there is to learn is which of the masked ones were left as they are, so a loss of less than
9.4 is out of reach. The learning rate grows over the first steps, of PyTorch too; without that BERT learns nothing
here, and its loss leaps now and then.

What PyTorch is spared: making batches is not timed, all its batches have the same shapes, so it compiles once, and
its memory is the most it had allocated, not what it took from the GPU. It has no dropout of attention weights: its
variable-length attention offers none.
"""

import argparse
import itertools
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

SHAPES = {"bert-tiny": (128, 2, 2), "bert-mini": (256, 4, 4), "bert-small": (512, 4, 8), "bert-base": (768, 12, 12),
          "bert-large": (1024, 24, 16)}
PEERS = ["unpadded-compiled", "unpadded", "padded-compiled", "padded"]
MAX_LENGTH = 512
VOCABULARY = 30522
MASK_RATE = 0.15
NO_LABEL = -100
WARM_UP_STEPS = 5  # of PyTorch, not timed
GROWING_STEPS = 60  # in which the learning rate grows, of both
LEARNING_RATE = 1e-4
MASK_TOKEN = 103
SMOOTHED_STEPS = 20  # of which a smoothed loss is the mean
PRINTED_LOSSES = 11  # of a curve
SAMPLE_SECONDS = 0.2  # between two looks at the clock
LAST_SAMPLES = slice(-20, -8)  # of a run: what is still training, and warm
CLOCK_AND_POWER = re.compile(r"([\d.]+), ([\d.]+)")


def training_flops(model, batches):
    """What the objectives need: real tokens, backward twice the forward, nothing that is computed again."""
    width, layers, _ = SHAPES[model]
    tokens = sum(batch["num_tokens"] for batch in batches)
    squares = sum(batch["squared_lengths"] for batch in batches)
    masked = sum(batch["num_masked"] for batch in batches)
    sequences = sum(batch["num_sequences"] for batch in batches)
    unread = tokens - masked - sequences  # which the last layer needs no further than its attention
    encoder = layers * (24 * width * width * tokens + 4 * width * squares) - 18 * width * width * unread
    heads = masked * 2 * width * (width + VOCABULARY) + sequences * 2 * width * (width + 2)
    return 3 * (encoder + heads)


def build_model(torch, name):
    """BERT with both heads. Where a batch has a mask its rows are padded, else its sequences lie end to end."""
    functional = torch.nn.functional
    width, num_layers, heads = SHAPES[name]

    class Norm(torch.nn.LayerNorm):
        def forward(self, x):
            return super().forward(x).to(torch.bfloat16)  # autocast leaves fp32, which would go through memory

    def attend(qkv, batch):
        if batch["mask"] is not None:
            q, k, v = qkv.view(-1, MAX_LENGTH, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            context = functional.scaled_dot_product_attention(q, k, v, attn_mask=batch["mask"])
            return context.transpose(1, 2).reshape(-1, width)
        from torch.nn.attention.varlen import varlen_attn

        q, k, v = qkv.view(-1, 3, heads, width // heads).unbind(1)
        offsets = batch["offsets"]
        return varlen_attn(q, k, v, offsets, offsets, MAX_LENGTH, MAX_LENGTH).reshape(-1, width)

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = torch.nn.Linear(width, 3 * width)
            self.project = torch.nn.Linear(width, width)
            self.widen = torch.nn.Linear(width, 4 * width)
            self.narrow = torch.nn.Linear(4 * width, width)
            self.first_norm = Norm(width, 1e-12)
            self.second_norm = Norm(width, 1e-12)
            self.dropout = torch.nn.Dropout(0.1)

        def forward(self, x, batch):
            x = self.first_norm(x + self.dropout(self.project(attend(self.qkv(x), batch))))
            return self.second_norm(x + self.dropout(self.narrow(functional.gelu(self.widen(x)))))

    class Bert(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.words = torch.nn.Embedding(VOCABULARY, width)
            self.positions = torch.nn.Embedding(MAX_LENGTH, width)
            self.segments = torch.nn.Embedding(2, width)
            self.norm = Norm(width, 1e-12)
            self.dropout = torch.nn.Dropout(0.1)
            self.layers = torch.nn.ModuleList(Layer() for _ in range(num_layers))
            self.transform = torch.nn.Linear(width, width)
            self.head_norm = Norm(width, 1e-12)
            self.word_bias = torch.nn.Parameter(torch.zeros(VOCABULARY))
            self.pool = torch.nn.Linear(width, width)
            self.classify = torch.nn.Linear(width, 2)

        def forward(self, batch):
            x = self.words(batch["ids"]) + self.positions(batch["positions"]) + self.segments(batch["segments"])
            x = self.dropout(self.norm(x))
            for layer in self.layers:
                x = layer(x, batch)
            masked = self.head_norm(functional.gelu(self.transform(x[batch["masked"]])))
            logits = functional.linear(masked, self.words.weight, self.word_bias)
            words = functional.cross_entropy(logits.float(), batch["labels"], ignore_index=NO_LABEL)
            classes = self.classify(torch.tanh(self.pool(x[batch["starts"]])))
            return words + functional.cross_entropy(classes.float(), batch["next"], ignore_index=NO_LABEL)

    def initialise(module):
        if isinstance(module, (torch.nn.Linear, torch.nn.Embedding)):
            torch.nn.init.normal_(module.weight, std=0.02)

    return Bert().apply(initialise)


def make_batches(torch, steps, num_rows, is_padded):
    """A batch for each list of lengths, all of the same shapes: what is left over is padding rows, sequences without
    tokens, and positions without labels."""
    most_masked = max(int(MASK_RATE * sum(lengths)) for lengths in steps)
    # Unpadded, rows behind the last sequence become sequences too, which count for nothing.
    most_sequences = num_rows // MAX_LENGTH if is_padded else max(
        len(lengths) + -(-(num_rows - sum(lengths)) // MAX_LENGTH) for lengths in steps)
    batches = []
    for lengths in steps:
        rest = num_rows - sum(lengths)
        if is_padded:
            starts = [MAX_LENGTH * i for i in range(len(lengths))]
            positions = torch.arange(MAX_LENGTH).repeat(num_rows // MAX_LENGTH)
            filled = lengths + [0] * (num_rows // MAX_LENGTH - len(lengths))
            is_real = torch.arange(MAX_LENGTH)[None] < torch.tensor(filled)[:, None]
            layout = {"mask": is_real[:, None, None, :].cuda(), "offsets": None}
            real_rows = is_real.reshape(-1).nonzero()[:, 0]
        else:
            starts = [0, *itertools.accumulate(lengths)][:-1]
            pieces = lengths + [min(MAX_LENGTH, rest - begin) for begin in range(0, rest, MAX_LENGTH)]
            positions = torch.cat([torch.arange(n) for n in pieces])
            offsets = [0, *itertools.accumulate(pieces)]
            offsets += [num_rows] * (most_sequences + 1 - len(offsets))
            layout = {"mask": None, "offsets": torch.tensor(offsets, dtype=torch.int32).cuda()}
            real_rows = torch.arange(sum(lengths))
        ids = torch.randint(5, VOCABULARY, (num_rows,))
        num_masked = int(MASK_RATE * len(real_rows))
        masked = real_rows[torch.randperm(len(real_rows))[:num_masked]].sort().values
        labels = ids[masked]
        draw = torch.rand(num_masked)  # of masked tokens, 8 in 10 are hidden and 1 is replaced
        ids[masked] = torch.where(draw < 0.8, MASK_TOKEN, torch.where(
            draw < 0.9, torch.randint(5, VOCABULARY, (num_masked,)), labels))
        no_rows = torch.zeros(most_masked - num_masked, dtype=torch.int64)
        starts = torch.tensor(starts)
        no_starts = torch.zeros(most_sequences - len(starts), dtype=torch.int64)
        inputs = {
            "ids": ids, "positions": positions, "segments": torch.zeros_like(ids),
            "masked": torch.cat([masked, no_rows]), "labels": torch.cat([labels, no_rows + NO_LABEL]),
            "starts": torch.cat([starts, no_starts]),
            "next": torch.cat([torch.randint(0, 2, (len(starts),)), no_starts + NO_LABEL]),
        }
        batches.append({
            "inputs": {name: tensor.cuda() for name, tensor in inputs.items()} | layout,
            "num_tokens": sum(lengths), "squared_lengths": sum(n * n for n in lengths),
            "num_masked": num_masked, "num_sequences": len(lengths),
        })
    return batches


def run_torch(options):
    """The peer's process: trains, and prints what it reached."""
    import torch

    torch.manual_seed(0)
    num_rows = options.tokens[0]
    is_padded = options.peer.startswith("padded")
    steps = json.load(open(options.lengths, encoding="ascii"))
    if is_padded:  # the same sequences, as many as fit into the rows
        sequences = [n for lengths in steps for n in lengths]
        size = num_rows // MAX_LENGTH
        steps = [sequences[i:i + size] for i in range(0, len(sequences) - size + 1, size)]
    num_steps = min(options.peer_steps + WARM_UP_STEPS, len(steps))
    batches = make_batches(torch, steps[:num_steps], num_rows, is_padded)
    model = build_model(torch, options.model[0]).cuda().train()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE, fused=True)
    compute_loss = torch.compile(model) if options.peer.endswith("compiled") else model

    def train(step, batch):
        for group in optimizer.param_groups:
            group["lr"] = LEARNING_RATE * min(1, (step + 1) / GROWING_STEPS)
        with torch.autocast("cuda", torch.bfloat16):
            loss = compute_loss(batch["inputs"])
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    print("begins the first step", file=sys.stderr, flush=True)
    for step, batch in enumerate(batches[:WARM_UP_STEPS]):
        train(step, batch)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for step, batch in enumerate(batches[WARM_UP_STEPS:], WARM_UP_STEPS):
        train(step, batch)
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    timed = batches[WARM_UP_STEPS:]
    print(json.dumps({
        "tokens_per_second": sum(batch["num_tokens"] for batch in timed) / seconds,
        "useful_tflops": training_flops(options.model[0], timed) / seconds * 1e-12,
        "ms_per_step": seconds / len(timed) * 1e3,
        "used_gb": torch.cuda.max_memory_allocated() * 1e-9,
        "torch": torch.__version__,
    }))


def watch_clock():
    """A process that prints the GPU's clock in MHz and its power in W again and again, or None without its tool."""
    try:
        return subprocess.Popen(
            ["nvidia-smi", "--id=0", "--query-gpu=clocks.sm,power.draw.instant", "--format=csv,noheader,nounits",
             f"--loop-ms={int(1000 * SAMPLE_SECONDS)}"], stdout=subprocess.PIPE, text=True)
    except OSError:
        return None


def last_clock(watch):
    """Stops watching: medians of clock and power over the last seconds."""
    if watch is None:
        return {}
    watch.terminate()
    samples = [CLOCK_AND_POWER.fullmatch(line) for line in watch.communicate()[0].splitlines()]
    samples = [sample.groups() for sample in samples[LAST_SAMPLES] if sample]
    if not samples:
        return {}
    return {"mhz": statistics.median(float(clock) for clock, _ in samples),
            "watts": statistics.median(float(power) for _, power in samples)}


def measure(what, command, limit_seconds):
    """The JSON object of a run's last line, with the clock; or None where it failed."""
    begin = time.perf_counter()
    watch = watch_clock()
    # A session of its own: what it started ends with it.
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    try:
        printed, said = run.communicate(timeout=limit_seconds)
    except subprocess.TimeoutExpired:
        os.killpg(run.pid, signal.SIGKILL)
        printed, said = "", run.communicate()[1] + f"longer than {limit_seconds} s"
    clock = last_clock(watch)
    result = json.loads(printed.splitlines()[-1]) | clock if run.wait() == 0 and printed else None
    reached = (f"{result['tokens_per_second']:,.0f} tokens/s" if result
               else "failed: " + " / ".join(said.splitlines()[-3:]))
    print(f"{time.perf_counter() - begin:6.1f} s  {what}: {reached}", file=sys.stderr, flush=True)
    return result


def plan(options, folder):
    """What is run, in this order: its name, whose second part has a baseline of its own, and its command. The same
    name may come again."""

    size, *other_sizes = options.tokens
    first, *other_models = options.model

    def lengths_of(tokens):
        return os.path.join(folder, f"lengths_{tokens}.json")

    def name_of(model, tokens):
        return model if tokens == size else f"{model} at {tokens}"

    def ours(name, model, tokens, *arguments):
        return (f"Plenum, {name}",
                [options.bench, "--lengths", options.histogram, "--model", model, "--tokens", str(tokens),
                 "--steps", str(options.steps), *arguments])

    def losses_of(model, layout):
        return ["--losses", losses_path(options, model, layout)] if options.losses else []

    def unpadded(model, tokens=size):
        return ours(name_of(model, tokens), model, tokens, "--drawn-lengths", lengths_of(tokens),
                    *(losses_of(model, "unpadded") if tokens == size else []))

    def theirs(model, peer, tokens=size):
        return (f"PyTorch, {name_of(model, tokens)}, {peer}",
                [sys.executable, __file__, "--peer", peer, "--lengths", lengths_of(tokens), "--model", model,
                 "--tokens", str(tokens), "--peer-steps", str(options.peer_steps)])

    def other_layouts(model):
        return [ours(f"{model}, {layout}", model, size, "--layout", layout, *losses_of(model, layout))
                for layout in options.layouts if layout != "unpadded"]

    runs = []
    for repeat in range(options.repeats):
        if "unpadded" in options.layouts or repeat == 0:  # the first writes the lengths
            runs.append(unpadded(first))
        if repeat < options.peer_repeats:
            # All peers once, then only the first again.
            runs += [theirs(first, peer) for peer in (options.peers if repeat == 0 else options.peers[:1])]
    runs += [ours(f"{first}, attention dropout {rate}", first, size, "--attention-dropout", str(rate))
             for rate in options.attention_dropout]
    runs += other_layouts(first)
    for tokens in other_sizes:
        runs += [unpadded(first, tokens)] + [theirs(first, peer, tokens) for peer in options.peers[:1]]
    for model in other_models:
        runs += [unpadded(model)] + [theirs(model, peer) for peer in options.peers[:1]] + other_layouts(model)
    return runs


def losses_path(options, model, layout):
    return os.path.join(options.losses, f"{model}_{layout}.json")


def smoothed_losses(path):
    with open(path, encoding="ascii") as file:
        losses = json.load(file)
    return [statistics.fmean(losses[end - SMOOTHED_STEPS:end]) for end in range(SMOOTHED_STEPS, len(losses) + 1)]


def print_losses(options, results):
    """For each model the smoothed losses of its layouts, of the steps that are not timed too, and how far they are from
    those of unpadded at any step."""
    for model in options.model:
        names = {"unpadded": f"Plenum, {model}"} | {layout: f"Plenum, {model}, {layout}" for layout in options.layouts
                                                    if layout != "unpadded"}
        curves = {layout: smoothed_losses(losses_path(options, model, layout))
                  for layout, name in names.items() if results.get(name)}
        unpadded = curves.get("unpadded")
        if not unpadded or len(curves) < 2:
            continue
        print(f"\n{model}, masked loss, mean of {SMOOTHED_STEPS} steps")
        print(f"{'up to step':20}" + "".join(f" {layout:>9}" for layout in curves))
        last = len(unpadded) - 1
        for index in sorted({last * i // (PRINTED_LOSSES - 1) for i in range(PRINTED_LOSSES)}):
            print(f"{index + SMOOTHED_STEPS:<20}" + "".join(f" {curve[index]:9.4f}" for curve in curves.values()))
        distances = [[abs(a - b) for a, b in zip(curve, unpadded)] for curve in curves.values()]
        for what, measure_of in (("largest distance", max), ("mean distance", statistics.fmean)):
            print(f"{what:20}" + "".join(f" {measure_of(one):9.1e}" for one in distances))


def print_table(options, results):
    """`results`: for each name the objects of its runs."""
    rates_of_product = [(run["product_tflops"], run["sustained_product_tflops"])
                        for runs in results.values() for run in runs if "product_tflops" in run]
    burst = max((burst for burst, _ in rates_of_product), default=0)
    product = statistics.median(sustained for _, sustained in rates_of_product) if rates_of_product else 0
    peers = [name for name in results if name.startswith("PyTorch") and results[name]]
    versions = {run["torch"] for name in peers for run in results[name]}
    rates = {name: statistics.median(run["tokens_per_second"] for run in runs)
             for name, runs in results.items() if runs}
    print(f"{options.tokens[0]} tokens a step, torch {', '.join(versions) or 'not run'}; a large product: {product:.0f} "
          f"TFLOP/s sustained, {burst:.0f} in a burst; x: of the fastest PyTorch with that model and size")
    print(f"{'':42} {'runs':>4} {'real tokens/s':>13} {'x':>5} {'TFLOP/s':>8} {'of product':>10} {'GB':>6} {'MHz':>5} "
          f"{'W':>4}")
    for name, runs in results.items():
        if not runs:
            print(f"{name:42} failed")
            continue
        model = name.split(", ")[1]
        baseline = max((rates[peer] for peer in peers if peer.split(", ")[1] == model), default=None)
        useful = statistics.median(run["useful_tflops"] for run in runs)
        ratio = f"{rates[name] / baseline:.2f}" if baseline else ""
        share = f"{100 * useful / product:.0f} %" if product else ""
        clocks = "".join(f" {statistics.median(run[key] for run in runs):{width}.0f}"
                         for key, width in (("mhz", 5), ("watts", 4)) if all(key in run for run in runs))
        print(f"{name:42} {len(runs):4} {rates[name]:13,.0f} {ratio:>5} {useful:8.0f} {share:>10} "
              f"{max(run['used_gb'] for run in runs):6.1f}{clocks}")
    for name, runs in results.items():
        if len(runs) > 1:
            print(f"{name}: " + ", ".join(f"{run['tokens_per_second']:,.0f}" for run in runs) + " tokens/s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--histogram", help="line i counts the sequences of length i")
    parser.add_argument("--bench", default="build-cuda/bench/bench_gpu_train")
    parser.add_argument("--model", nargs="+", default=["bert-large"], choices=SHAPES)
    parser.add_argument("--tokens", nargs="+", type=int, default=[32768], help="of a step")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--layouts", nargs="+", default=["unpadded"], choices=["unpadded", "padded", "packed"])
    parser.add_argument("--losses", metavar="FOLDER", help="keep and compare the losses of Plenum's layouts")
    parser.add_argument("--attention-dropout", nargs="*", type=float, default=[], help="one run more for each rate")
    parser.add_argument("--peers", nargs="*", default=["unpadded-compiled"], choices=PEERS)
    parser.add_argument("--peer-steps", type=int, default=60)
    parser.add_argument("--peer-repeats", type=int, default=1)
    parser.add_argument("--limit", type=float, default=300, help="seconds after which a run counts as failed")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--lengths", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return run_torch(options)
    if not options.histogram:
        parser.error("--histogram is needed")
    options.bench = os.path.abspath(options.bench)
    if options.losses:
        os.makedirs(options.losses, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        results = {}
        for name, command in plan(options, folder):
            result = measure(name, command, options.limit)
            results.setdefault(name, []).extend([result] if result else [])
    print_table(options, results)
    if options.losses:
        print_losses(options, results)
    if not all(results.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
