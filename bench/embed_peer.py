#!/usr/bin/env python3
"""Measures `plenum embed` beside sentence-transformers on the same model and texts, on CPUs in fp32, in one run.

    python bench/embed_peer.py --model bert-base-uncased --input texts.txt --threads 2

Sentence-transformers sorts texts by length and pads each batch to its longest. Its seconds are those of `encode`, which
tokenizes too, behind a call that warms it up; Plenum's are those that it prints, with reading, tokenizing and writing.
Rounds take turns, each side in a process of its own; the median counts. Ends with 1 where vectors differ by more than
1e-4 of the largest number.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def run_peer(options):
    """The peer's process."""
    import numpy
    import torch
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer

    torch.set_num_threads(options.threads)
    texts = pathlib.Path(options.input).read_text(encoding="utf-8").splitlines()
    transformer = Transformer(options.model)
    model = SentenceTransformer(
        modules=[transformer, Pooling(transformer.get_embedding_dimension(), pooling_mode="mean")], device="cpu")
    model.encode(texts[:options.batch])
    begin = time.perf_counter()
    vectors = model.encode(texts, batch_size=options.batch, convert_to_numpy=True)
    seconds = time.perf_counter() - begin
    numpy.save(options.peer, vectors)
    print(json.dumps({"seconds": seconds, "torch": torch.__version__}))


def run_plenum(options, output):
    done = subprocess.run([options.plenum, "embed", "--model", options.model, "--input", options.input, "--output", output,
                           "--device", "cpu", "--threads", str(options.threads), "--json"], check=True,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="a Hugging Face directory")
    parser.add_argument("--input", required=True, help="a text in each line")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batch", type=int, default=32, help="of sentence-transformers")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--plenum", default="build/plenum")
    parser.add_argument("--peer", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peer:
        return run_peer(options)
    import numpy

    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = os.path.join(folder, "plenum.npy"), os.path.join(folder, "peer.npy")
        results = {"plenum": [], "sentence-transformers": []}
        for _ in range(options.rounds):
            results["plenum"].append(run_plenum(options, ours))
            done = subprocess.run([sys.executable, __file__, *sys.argv[1:], "--peer", theirs], check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            results["sentence-transformers"].append(json.loads(done.stdout.splitlines()[-1]))
        a, b = numpy.load(ours), numpy.load(theirs)
        error = abs(a - b).max() / abs(b).max()
    seconds = {name: statistics.median(run["seconds"] for run in runs) for name, runs in results.items()}
    print(f"{len(a):,} texts, {options.threads} threads, torch {results['sentence-transformers'][0]['torch']}, median of "
          f"{options.rounds}; largest relative difference {error:.1e}")
    for name, taken in seconds.items():
        print(f"{name:24}{taken:9.2f} s {len(a) / taken:10,.0f} texts/s {seconds['sentence-transformers'] / taken:7.2f}x")
    sys.exit(0 if error <= 1e-4 else 1)


if __name__ == "__main__":
    main()
