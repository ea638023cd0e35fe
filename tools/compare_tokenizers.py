#!/usr/bin/env python3
"""Compares the ids of `plenum tokenize` with those of Hugging Face `tokenizers`, line by line.

The text is generated (tools/mixed_text.py) and, where given, read from files. Prints how many lines were
compared and the first difference; exit code 1 if there is one. Where `tokenizers` cannot be imported it says so
and exits with 0, unless --require is given.
"""

import argparse
import itertools
import os
import pathlib
import random
import subprocess
import sys
import tempfile

import mixed_text

try:
    from tokenizers import BertWordPieceTokenizer
except ImportError:
    BertWordPieceTokenizer = None

BATCH_LINES = 2000


def generated_lines(megabytes, seed):
    left = int(megabytes * 1e6)
    for line in mixed_text.mixed_lines(seed):
        if left <= 0:
            return
        left -= len(line.encode()) + 1
        yield line


def file_lines(paths):
    for path in paths:
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            for line in file:
                yield line.rstrip("\n")


def write_text(lines, path):
    count = size = 0
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for line in lines:
            file.write(line + "\n")
            count += 1
            size += len(line.encode()) + 1
    return count, size


def train(text_path, vocab_path, cased):
    """A vocabulary with most characters of the text, so that differences show as ids."""
    tokenizer = BertWordPieceTokenizer(lowercase=not cased)
    rng = random.Random(3)
    with open(text_path, encoding="utf-8", newline="\n") as file:
        sample = [line for line in file if rng.random() < 0.1 or line.isascii() and rng.random() < 0.05]
    tokenizer.train_from_iterator(sample, vocab_size=20000, limit_alphabet=8000, show_progress=False)
    tokens = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    vocab_path.write_text("".join(token + "\n" for token, _ in tokens), encoding="utf-8", newline="\n")


def compare(options, text_path, vocab_path, cased):
    tokens = vocab_path.read_text(encoding="utf-8").split("\n")[:-1]
    peer = BertWordPieceTokenizer({token: i for i, token in enumerate(tokens)}, lowercase=not cased)
    ids_path = text_path.with_suffix(".ids")
    with open(text_path, "rb") as text, open(ids_path, "wb") as ids:
        command = [options.plenum, "tokenize", "--vocab", str(vocab_path)] + (["--cased"] if cased else [])
        subprocess.run(command, stdin=text, stdout=ids, check=True)
    compared = num_ids = num_unknown = 0
    with open(text_path, encoding="utf-8", newline="\n") as text, open(ids_path) as ours:
        while batch := [line.rstrip("\n") for line in itertools.islice(text, BATCH_LINES)]:
            for line, encoding in zip(batch, peer.encode_batch(batch, add_special_tokens=False)):
                expected = " ".join(map(str, encoding.ids))
                found = ours.readline()
                if found != expected + "\n":
                    print(f"line {compared + 1} differs ({'cased' if cased else 'uncased'}): {line!r}")
                    print(f"  tokenizers: {expected}\n  plenum:     {found.rstrip()}")
                    return False
                compared += 1
                num_ids += len(encoding.ids)
                num_unknown += encoding.ids.count(1)
        if ours.readline():
            print("plenum printed more lines than it was given")
            return False
    print(f"{'cased' if cased else 'uncased'}: {compared:,} lines, {num_ids:,} ids ({num_unknown:,} unknown), all identical",
          flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="*", help="text files to compare as well")
    parser.add_argument("--plenum", default="build/plenum", help="the program")
    parser.add_argument("--megabytes", type=float, default=5, help="how much text to generate")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--vocab", type=pathlib.Path, help="a vocab.txt; one is trained if not given")
    parser.add_argument("--case", choices=["both", "cased", "uncased"], default="both")
    parser.add_argument("--require", action="store_true", help="fail where tokenizers cannot be imported")
    options = parser.parse_args()
    if BertWordPieceTokenizer is None:
        print("skipped: this Python cannot import tokenizers (pip install tokenizers)")
        sys.exit(1 if options.require else 0)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    with tempfile.TemporaryDirectory() as folder:
        text_path = pathlib.Path(folder) / "mixed.txt"
        lines = itertools.chain(generated_lines(options.megabytes, options.seed), file_lines(options.files))
        count, size = write_text(lines, text_path)
        print(f"{count:,} lines, {size / 1e6:.1f} MB", flush=True)
        for case in ["uncased", "cased"] if options.case == "both" else [options.case]:
            vocab_path = options.vocab or pathlib.Path(folder) / f"{case}.txt"
            if options.vocab is None:
                train(text_path, vocab_path, case == "cased")
            if not compare(options, text_path, vocab_path, case == "cased"):
                sys.exit(1)


if __name__ == "__main__":
    main()
