#!/usr/bin/env python3
"""Compares the vectors of `plenum embed` with those of sentence-transformers, on the CPU in float32: every pooling, with
and without normalization. Exits 1 where they differ by more than 1e-5 of the largest number.

    verify_vectors.py PLENUM MODEL TEXTS.txt        MODEL: a Hugging Face directory; TEXTS: one per line
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

TOLERANCE = 1e-5


def reference(model, texts, pooling, is_normalized):
    transformer = Transformer(model)
    modules = [transformer, Pooling(transformer.get_embedding_dimension(), pooling_mode=pooling)]
    if is_normalized:
        modules.append(Normalize())
    return SentenceTransformer(modules=modules, device="cpu").encode(texts, convert_to_numpy=True)


def embed(plenum, model, input_path, pooling, is_normalized):
    with tempfile.TemporaryDirectory() as directory:
        output = f"{directory}/vectors.npy"
        subprocess.run([plenum, "embed", "--model", model, "--input", input_path, "--output", output, "--pooling",
                        pooling, "--device", "cpu"] + (["--normalize"] if is_normalized else []),
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return numpy.load(output)


def main():
    plenum, model, input_path = sys.argv[1:]
    texts = pathlib.Path(input_path).read_text().splitlines()
    is_good = True
    for pooling in ("mean", "cls"):
        for is_normalized in (False, True):
            expected = reference(model, texts, pooling, is_normalized)
            actual = embed(plenum, model, input_path, pooling, is_normalized)
            same_form = actual.dtype == numpy.float32 and actual.shape == expected.shape
            error = abs(actual - expected).max() / abs(expected).max() if same_form else numpy.inf
            is_good = is_good and error <= TOLERANCE
            print(f"{pooling}{', normalized' if is_normalized else ''}: {actual.shape[0]} vectors of width "
                  f"{actual.shape[1]}, largest relative difference {error:.1e}")
    sys.exit(0 if is_good else 1)


if __name__ == "__main__":
    main()
