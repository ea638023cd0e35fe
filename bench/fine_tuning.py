#!/usr/bin/env python3
"""Fine-tunes a BERT with `plenum finetune` and with transformers on the same sentences, and prints the ratios.

    python bench/fine_tuning.py --models mini base --threads 2
    python bench/fine_tuning.py --models base --train cola/in_domain_train.tsv --vocab bert-base-uncased-vocab.txt
    python bench/fine_tuning.py --models base large --device cuda --compile --plenum build-cuda/plenum --json h200.json

A step is forward, backward, clipping and AdamW on `--batch` sentences, with one class for each, dropout 0.1 and
`--attention-dropout`; fp32 on CPUs, bf16 (with PyTorch under autocast) on a GPU. Both sides begin with the same random
encoder and train on the same sentences, each in an order of its own. Beside Plenum's layouts stand

    padded to maximum    BertForSequenceClassification, every sentence padded to `--max-length`
    dynamic padding      the same with DataCollatorWithPadding: padded to the longest of its batch
    flattening           DataCollatorWithFlattening, which lays a batch into one row. Of a row that model makes one
                         class, so the line gives its error (its collator takes no class of a whole sentence either)
    flattened, own head  what one writes instead: BertModel on that collator's sequences end to end, with a head on
                         every [CLS], and attention sentence by sentence on CPUs or PyTorch's varlen_attn on GPUs, which
                         has no dropout

`--compile` adds each of them under torch.compile. Without --train the sentences are made, of CoLA's lengths
(tests/golden/cola_128_histogram.txt).

Every measurement is a process of its own, and rounds go through all of them in turn. Rates are those of the steps
behind a warm-up, the median of the rounds. What PyTorch is spared: its batches are tokenized, collated and on the
device before the clock starts, where Plenum makes them, and keeps metrics, as it trains. Tokens are real ones; `real` is
their share of those that are computed, and GFLOP/s count what is multiplied for all that are computed.
"""

import argparse
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time

SHAPES = {"tiny": (128, 2, 2), "mini": (256, 4, 4), "small": (512, 4, 8), "base": (768, 12, 12), "large": (1024, 24, 16)}
VOCABULARY = 30522
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
LAYOUTS = ["unpadded", "packed", "padded"]
PEERS = {"maximum": "padded to maximum", "dynamic": "dynamic padding", "flattening": "flattening",
         "flattened": "flattened, own head"}
HISTOGRAM = os.path.join(os.path.dirname(__file__), "..", "tests", "golden", "cola_128_histogram.txt")


def made_sentences(histogram, count, seed):
    """Sentences whose numbers of tokens follow a file with the number of sequences of length i in line i."""
    with open(histogram, encoding="ascii") as file:
        counts = [int(line) for line in file]
    draw = random.Random(seed)
    lengths = draw.choices(range(1, len(counts) + 1), counts, k=count)
    words = [[draw.randrange(VOCABULARY - len(SPECIAL)) for _ in range(max(1, n - 2))] for n in lengths]
    return [(str(sentence[0] % 2), " ".join(f"w{word}" for word in sentence)) for sentence in words]


def read_sentences(options, count):
    with open(options.train, encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\n").split("\t") for line in file]
    pairs = [(row[options.label_column - 1], row[options.text_column - 1]) for row in rows]
    random.Random(options.seed).shuffle(pairs)
    return pairs[:count]


def write_inputs(options, folder):
    """The sentences, as many as are trained on where there are so many, and the vocabulary."""
    count = options.batch * (options.warm_up + options.steps)
    pairs = read_sentences(options, count) if options.train else made_sentences(HISTOGRAM, count, options.seed)
    with open(os.path.join(folder, "train.tsv"), "w", encoding="utf-8") as file:
        file.write("label\tsentence\n" + "".join(f"{label}\t{text}\n" for label, text in pairs))
    if options.vocab:
        with open(options.vocab, encoding="utf-8", newline="\n") as file:
            vocabulary = file.read()
    else:
        vocabulary = "\n".join(SPECIAL + [f"w{i}" for i in range(VOCABULARY - len(SPECIAL))]) + "\n"
    return vocabulary


def write_model(options):
    """The process that makes a random encoder."""
    import torch
    import transformers

    width, layers, heads = SHAPES[options.write_model]
    torch.manual_seed(0)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=4 * width, attention_probs_dropout_prob=options.attention_dropout)
    transformers.BertModel(config).save_pretrained(options.folder)


def build_flattened(torch, transformers, options, device):
    """BertModel over sequences laid end to end, with the head of BertForSequenceClassification on every first token."""
    if device == "cuda":
        from torch.nn.attention.varlen import varlen_attn

    def attend(module, query, key, value, attention_mask, scaling=None, dropout=0.0, cu_seq_lens_q=None,
               max_length_q=None, lengths=None, **ignored):
        q, k, v = (x[0].transpose(0, 1) for x in (query, key, value))  # tokens, heads, width of a head
        if device == "cuda":
            return varlen_attn(q, k, v, cu_seq_lens_q, cu_seq_lens_q, max_length_q, max_length_q)[None], None
        parts = zip(*(x[0].split(lengths, 1) for x in (query, key, value)))
        contexts = [torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], dropout_p=dropout)[0]
                    for q, k, v in parts]
        return torch.cat(contexts, 1).transpose(0, 1)[None], None

    transformers.AttentionInterface.register("end_to_end", attend)
    transformers.AttentionMaskInterface.register("end_to_end", lambda *arguments, **named: None)

    class Flattened(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bert = transformers.BertModel.from_pretrained(
                options.folder, attn_implementation="end_to_end", add_pooling_layer=False)
            width = self.bert.config.hidden_size
            self.pool = torch.nn.Linear(width, width)
            self.dropout = torch.nn.Dropout(0.1)
            self.classify = torch.nn.Linear(width, 2)

        def forward(self, labels, starts, **batch):
            first = self.bert(**batch).last_hidden_state[0, starts]
            logits = self.classify(self.dropout(torch.tanh(self.pool(first))))
            return torch.nn.functional.cross_entropy(logits, labels)

    return Flattened()


def build_classifier(torch, transformers, options):
    has_flash = transformers.utils.is_flash_attn_2_available()
    attention = "flash_attention_2" if options.peer == "flattening" and has_flash else "sdpa"

    class Classifier(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = transformers.BertForSequenceClassification.from_pretrained(
                options.folder, num_labels=2, attn_implementation=attention)

        def forward(self, **batch):
            return self.model(**batch).loss

    return Classifier()


def collate(torch, transformers, options, examples, tokenizer):
    """A batch as the peer's collator makes it, with the tokens that are computed for it."""
    if options.peer in ("maximum", "dynamic"):
        padding = "max_length" if options.peer == "maximum" else "longest"
        collator = transformers.DataCollatorWithPadding(tokenizer, padding=padding, max_length=options.max_length)
        batch = collator(examples)
        return batch, batch["input_ids"].numel(), len(examples) * batch["input_ids"].shape[1] ** 2
    collator = transformers.DataCollatorWithFlattening(return_flash_attn_kwargs=True)
    lengths = [len(example["input_ids"]) for example in examples]
    squares = sum(length * length for length in lengths)
    if options.peer == "flattening":
        of_tokens = [{"input_ids": one["input_ids"], "labels": [one["labels"]] * len(one["input_ids"])} for one in examples]
        return collator(of_tokens), sum(lengths), squares
    batch = collator([{"input_ids": example["input_ids"]} for example in examples])
    batch["labels"] = torch.tensor([example["labels"] for example in examples])
    batch["max_length_q"] = batch["max_length_k"] = options.max_length  # a number that differs would be compiled again
    batch["starts"] = batch["cu_seq_lens_q"][:-1].long()
    if options.device == "cpu":
        batch["lengths"] = lengths
    return batch, sum(lengths), squares


def training_flops(name, tokens, squared_lengths):
    """Of the encoder, backward twice the forward."""
    width, layers, _ = SHAPES[name]
    return 3 * layers * (24 * width * width * tokens + 4 * width * squared_lengths)


def product_rate(torch, options):
    """GFLOP/s of a large product of the model's widths, of ten the fastest."""
    width = SHAPES[options.model][0]
    dtype = torch.bfloat16 if options.device == "cuda" else torch.float32
    x, weight = (torch.randn(rows, width, device=options.device, dtype=dtype) for rows in (4096, 4 * width))
    seconds = []
    for _ in range(10):
        begin = time.perf_counter()
        torch.nn.functional.linear(x, weight)
        if options.device == "cuda":
            torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
    return 2 * 4096 * width * 4 * width / min(seconds) * 1e-9


def run_torch(options):
    """The peer's process: trains, and prints its rates."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    device = options.device
    tokenizer = transformers.AutoTokenizer.from_pretrained(options.folder)
    with open(os.path.join(options.folder, "train.tsv"), encoding="utf-8", newline="\n") as file:
        rows = [line.rstrip("\n").split("\t") for line in file][1:]
    encoded = tokenizer([text for _, text in rows], truncation=True, max_length=options.max_length)["input_ids"]
    examples = [{"input_ids": ids, "labels": int(label)} for ids, (label, _) in zip(encoded, rows)]
    num_batches, order, draw = options.warm_up + options.steps, [], random.Random(options.seed)
    while len(order) < num_batches * options.batch:
        order += draw.sample(range(len(examples)), len(examples))
    batches, counts = [], []
    for index in range(num_batches):
        chosen = [examples[i] for i in order[index * options.batch:(index + 1) * options.batch]]
        batch, computed, squares = collate(torch, transformers, options, chosen, tokenizer)
        batches.append({key: value.to(device) if torch.is_tensor(value) else value for key, value in batch.items()})
        counts.append({"real": sum(len(one["input_ids"]) for one in chosen), "computed": computed,
                       "flops": training_flops(options.model, computed, squares)})
    model = (build_flattened(torch, transformers, options, device) if options.peer == "flattened"
             else build_classifier(torch, transformers, options)).to(device).train()
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=2e-5, weight_decay=0.01, fused=True)
    compute_loss = torch.compile(model, dynamic=options.peer != "maximum") if options.compile else model
    seconds, begin = 0.0, 0.0
    for step, batch in enumerate(batches):
        if step == options.warm_up:
            if device == "cuda":
                torch.cuda.synchronize()
            begin = time.perf_counter()
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            loss = compute_loss(**batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    if device == "cuda":
        torch.cuda.synchronize()
    seconds = time.perf_counter() - begin
    if not math.isfinite(loss.item()):
        sys.exit("the loss is not finite")
    timed = counts[options.warm_up:]
    totals = {key: sum(count[key] for count in timed) for key in timed[0]}
    print(json.dumps(rates_of(options, seconds, len(timed), totals)
                     | {"product_gflops": product_rate(torch, options), "torch": torch.__version__,
                        "transformers": transformers.__version__}))


def rates_of(options, seconds, steps, totals):
    return {"sequences_per_second": steps * options.batch / seconds, "tokens_per_second": totals["real"] / seconds,
            "ms_per_step": 1e3 * seconds / steps, "real_share": totals["real"] / totals["computed"],
            "gflops_per_second": totals["flops"] / seconds * 1e-9, "steps": steps}


def run_plenum(options, layout, seed):
    """A process of Plenum; its rates, from the lines that it keeps for every step."""
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        run = os.path.join(folder, "run")
        command = [options.plenum, "finetune", "--model", options.folder, "--task", "classification", "--train",
                   os.path.join(options.folder, "train.tsv"), "--run", run, "--steps",
                   str(options.warm_up + options.steps), "--global-batch", str(options.batch), "--max-length",
                   str(options.max_length), "--layout", layout, "--seed", str(seed), "--device", options.device,
                   "--threads", str(options.threads), "--learning-rate", "2e-5", "--quiet", "--json"]
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            return {"failed": done.stderr.strip().splitlines()[-1]}
        with open(os.path.join(run, "metrics.jsonl"), encoding="ascii") as file:
            steps = [json.loads(line) for line in file]
    timed = steps[options.warm_up:]
    real = sum(step["real_tokens"] for step in timed)
    computed = real + sum(step["padded_tokens"] for step in timed)
    # What real tokens need, without rows of the last layer that no head reads.
    flops = sum(step["flops"] for step in timed) * computed / real
    totals = {"real": real, "computed": computed, "flops": flops}
    return rates_of(options, steps[-1]["wall_seconds"] - steps[options.warm_up - 1]["wall_seconds"], len(timed), totals)


def run_peer(options, name, peer, compiled, seed):
    steps = options.padded_steps or options.steps if peer == "maximum" else options.steps
    command = [sys.executable, __file__, "--peer", peer, "--folder", options.folder, "--model", name, "--device",
               options.device, "--threads", str(options.threads), "--batch", str(options.batch), "--max-length",
               str(options.max_length), "--steps", str(steps), "--warm-up", str(options.warm_up), "--seed", str(seed)]
    try:
        done = subprocess.run(command + (["--compile"] if compiled else []), stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=False, timeout=options.limit)
    except subprocess.TimeoutExpired:
        return {"failed": f"longer than {options.limit} s"}
    if done.returncode != 0 or not done.stdout:
        return {"failed": done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no output"}
    return json.loads(done.stdout.splitlines()[-1])


def measure(options, name):
    """For each row the results of its rounds."""
    rows = {f"Plenum, {layout}": lambda seed, layout=layout: run_plenum(options, layout, seed)
            for layout in options.layouts}
    for compiled in ([False, True] if options.compile else [False]):
        for peer in options.peers:
            # On CPUs the lengths of each step are part of that code: it would be compiled again in every step.
            if compiled and (peer == "flattening" or (peer == "flattened" and options.device == "cpu")):
                continue
            rows[f"PyTorch, {PEERS[peer]}" + (", compiled" if compiled else "")] = (
                lambda seed, peer=peer, compiled=compiled: run_peer(options, name, peer, compiled, seed))
    results = {row: [] for row in rows}
    for turn in range(options.rounds):
        for row, run in rows.items():
            if turn > 0 and (row.endswith("compiled") or "failed" in results[row][-1]):
                continue
            results[row].append(run(options.seed + turn))
            last = results[row][-1]
            print(f"  round {turn + 1}, {row}: " + (last.get("failed") or f"{last['ms_per_step']:,.1f} ms a step"),
                  file=sys.stderr, flush=True)
    return results


def print_table(options, name, results):
    done = {row: [run for run in runs if "failed" not in run] for row, runs in results.items()}
    middle = {row: {key: statistics.median(run[key] for run in runs)
                    for key in ("sequences_per_second", "tokens_per_second", "ms_per_step", "real_share",
                                "gflops_per_second")} for row, runs in done.items() if runs}
    versions = {f"torch {run['torch']}, transformers {run['transformers']}"
                for runs in done.values() for run in runs if "torch" in run}
    products = [run["product_gflops"] for runs in done.values() for run in runs if "product_gflops" in run]
    bases = ["PyTorch, padded to maximum", "PyTorch, dynamic padding"]
    print(f"bert-{name}, {options.device}, {options.threads} threads, batches of {options.batch}, maximum length "
          f"{options.max_length}, {options.steps} steps behind {options.warm_up}, median of {options.rounds}; "
          f"{', '.join(sorted(versions)) or 'no peer ran'}")
    print(f"{'':38} {'sequences/s':>11} {'tokens/s':>9} {'ms/step':>9} {'of maximum':>10} {'of dynamic':>10} "
          f"{'real':>6} {'GFLOP/s':>9}")
    for row in results:
        if row not in middle:
            print(f"{row:38} did not run: {results[row][-1]['failed']}")
            continue
        one = middle[row]
        ratios = [f"{one['sequences_per_second'] / middle[base]['sequences_per_second']:.2f}x" if base in middle else ""
                  for base in bases]
        print(f"{row:38} {one['sequences_per_second']:11,.1f} {one['tokens_per_second']:9,.0f} "
              f"{one['ms_per_step']:9,.1f} {ratios[0]:>10} {ratios[1]:>10} {100 * one['real_share']:4.0f} % "
              f"{one['gflops_per_second']:9,.0f}")
    if products:
        print(f"PyTorch's products of 4,096 rows alone: {max(products):,.0f} GFLOP/s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["mini", "base"], choices=SHAPES)
    parser.add_argument("--train", help="sentences in a TSV file without a header; made ones if not given")
    parser.add_argument("--text-column", type=int, default=4, help="of --train, from 1")
    parser.add_argument("--label-column", type=int, default=2, help="of --train, from 1; labels are 0 and 1")
    parser.add_argument("--vocab", help="vocab.txt; needed with --train")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--max-length", type=int, default=128)
    parser.add_argument("--attention-dropout", type=float, default=0.1)
    parser.add_argument("--steps", type=int, help="that are timed; 10 on a CPU, 200 on a GPU")
    parser.add_argument("--padded-steps", type=int, help="timed steps of `padded to maximum`, all of which take the same")
    parser.add_argument("--warm-up", type=int, help="steps before those; 2 on a CPU, 30 on a GPU")
    parser.add_argument("--rounds", type=int, help="3 on a CPU, 2 on a GPU")
    parser.add_argument("--layouts", nargs="*", default=LAYOUTS, choices=LAYOUTS)
    parser.add_argument("--peers", nargs="*", default=list(PEERS), choices=PEERS)
    parser.add_argument("--compile", action="store_true", help="the peers under torch.compile too, one round")
    parser.add_argument("--limit", type=float, default=240, help="seconds after which a peer counts as failed")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--plenum", default="build/plenum")
    parser.add_argument("--json", help="write all results to this file")
    parser.add_argument("--peer", choices=PEERS, help=argparse.SUPPRESS)
    parser.add_argument("--write-model", choices=SHAPES, help=argparse.SUPPRESS)
    parser.add_argument("--model", help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.steps = options.steps or (200 if options.device == "cuda" else 10)
    options.warm_up = options.warm_up or (30 if options.device == "cuda" else 2)
    options.rounds = options.rounds or (2 if options.device == "cuda" else 3)
    if options.write_model:
        return write_model(options)
    if options.peer:
        return run_torch(options)
    if bool(options.train) != bool(options.vocab):
        parser.error("--train and --vocab go together")
    everything = {}
    for name in options.models:
        with tempfile.TemporaryDirectory() as options.folder:
            vocabulary = write_inputs(options, options.folder)
            subprocess.run([sys.executable, __file__, "--write-model", name, "--folder", options.folder,
                            "--attention-dropout", str(options.attention_dropout)], check=True, stderr=subprocess.DEVNULL)
            with open(os.path.join(options.folder, "vocab.txt"), "w", encoding="utf-8", newline="\n") as file:
                file.write(vocabulary)
            everything[name] = measure(options, name)
        print_table(options, name, everything[name])
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"options": {key: value for key, value in vars(options).items() if key != "folder"},
                       "results": everything}, file, indent=1)


if __name__ == "__main__":
    main()
