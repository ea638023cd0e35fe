#!/usr/bin/env python3
"""Trains vocabularies with Plenum and with Hugging Face `tokenizers` on the same text and compares them.

    python bench/vocabulary_peer.py text.txt --sizes 1000 8000 30000

Hugging Face numbers the `##` characters by the state of a hash table and breaks ties by these numbers, so two runs
of it differ. Plenum is therefore compared twice: by itself (how many tokens differ), and given the order that this
run of Hugging Face happened to use (then the lists must be the same).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time

try:
    import tokenizers
    from tokenizers import BertWordPieceTokenizer
except ImportError:
    sys.exit("this Python cannot import tokenizers: pip install tokenizers")


def train_peer(options, size):
    tokenizer = BertWordPieceTokenizer()
    begin = time.perf_counter()
    tokenizer.train([options.file], vocab_size=size, min_frequency=options.min_frequency, show_progress=False)
    seconds = time.perf_counter() - begin
    return [token for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])], seconds


def train(options, size, order):
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", newline="\n") as file:
        file.write("".join(character + "\n" for character in order))
        file.flush()
        command = [options.bench, options.file, str(size), str(options.min_frequency), file.name]
        done = subprocess.run(command, check=True, capture_output=True)
    return done.stdout.decode().split("\n")[:-1], json.loads(done.stderr)["seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", help="UTF-8 text")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 8000, 30000])
    parser.add_argument("--min-frequency", type=int, default=0)
    parser.add_argument("--bench", default="build/bench/bench_train_vocabulary")
    options = parser.parse_args()
    print(f"tokenizers {tokenizers.__version__}; seconds of wall time; Hugging Face counts and merges on all cores, "
          "Plenum on one")
    identical = True
    for size in options.sizes:
        peer, peer_seconds = train_peer(options, size)
        again, _ = train_peer(options, size)
        own, seconds = train(options, size, [])
        order = [token[2:] for token in peer if token.startswith("##") and len(token) == 3]
        ordered, _ = train(options, size, order)
        identical &= ordered == peer
        print(f"{size:7} tokens: tokenizers {peer_seconds:7.2f} s, plenum {seconds:6.2f} s; not in common: two runs of "
              f"tokenizers {len(set(peer) - set(again))}, plenum {len(set(peer) - set(own))}; with its order: "
              f"{'identical list' if ordered == peer else f'{len(set(peer) - set(ordered))} tokens differ'}", flush=True)
    sys.exit(0 if identical else 1)


if __name__ == "__main__":
    main()
