#!/usr/bin/env python3
"""Measures tokenisation beside Hugging Face `tokenizers` on the same text, one thread each, in one run.

    python bench/tokenizer_peer.py --vocab vocab.txt text.txt

Prints CPU seconds and MB/s of both, the ratio, and whether all ids are identical. Plenum is measured twice: the
encoder alone (build/bench/bench_tokenizer), as encode_batch is, and the whole of `plenum tokenize --threads 1`,
which reads and prints as well.
"""

import argparse
import itertools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

try:
    import tokenizers
    from tokenizers import BertWordPieceTokenizer
except ImportError:
    sys.exit("this Python cannot import tokenizers: pip install tokenizers")

BATCH_LINES = 1000


def measure_peer(options, lines):
    tokens = open(options.vocab, encoding="utf-8", newline="\n").read().split("\n")
    vocab = {token: i for i, token in enumerate(tokens) if token}
    peer = BertWordPieceTokenizer(vocab, lowercase=not options.cased)
    seconds, ids = 0.0, []
    for first in range(0, len(lines), BATCH_LINES):
        batch = lines[first : first + BATCH_LINES]
        begin = time.process_time()
        encodings = peer.encode_batch(batch, add_special_tokens=False)
        seconds += time.process_time() - begin
        ids.extend(" ".join(map(str, encoding.ids)) for encoding in encodings)
    return seconds, ids


def measure_program(options, path):
    command = [options.plenum, "tokenize", "--threads", "1", "--vocab", options.vocab]
    command += ["--cased"] if options.cased else []
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with open(path, "rb") as text, tempfile.TemporaryFile() as output:
        subprocess.run(command, stdin=text, stdout=output, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        output.seek(0)
        ids = output.read().decode().split("\n")[:-1]
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ids


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="UTF-8 text")
    parser.add_argument("--vocab", required=True, help="vocab.txt")
    parser.add_argument("--cased", action="store_true")
    parser.add_argument("--megabytes", type=float, default=20, help="how much of the text to use")
    parser.add_argument("--plenum", default="build/plenum")
    parser.add_argument("--bench", default="build/bench/bench_tokenizer")
    options = parser.parse_args()

    with open(options.file, encoding="utf-8", errors="replace", newline="\n") as file:
        text = file.read(int(options.megabytes * 1e6))
    lines = text.removesuffix("\n").split("\n")
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="\n", suffix=".txt") as copy:
        copy.write("\n".join(lines) + "\n")
        copy.flush()
        size = os.path.getsize(copy.name)
        arguments = [options.bench, options.vocab, copy.name] + (["--cased"] if options.cased else [])
        encoder = json.loads(subprocess.run(arguments, check=True, capture_output=True).stdout)
        program_seconds, program_ids = measure_program(options, copy.name)
    peer_seconds, peer_ids = measure_peer(options, lines)

    def row(name, seconds):
        print(f"{name:36}{seconds:9.3f} s {size / seconds / 1e6:9.1f} MB/s {peer_seconds / seconds:8.1f}x")

    num_ids = sum(line.count(" ") + 1 for line in peer_ids if line)
    print(f"{size / 1e6:.1f} MB, {len(lines):,} lines, {num_ids:,} ids, one thread, CPU time")
    row(f"tokenizers {tokenizers.__version__} encode_batch", peer_seconds)
    row("plenum encoder", encoder["seconds"])
    row("plenum tokenize (reads and prints)", program_seconds)
    different = next((i for i, (a, b) in enumerate(itertools.zip_longest(peer_ids, program_ids)) if a != b), None)
    print("ids: identical" if different is None else f"ids: DIFFERENT, first in line {different + 1}")
    sys.exit(0 if different is None else 1)


if __name__ == "__main__":
    main()
