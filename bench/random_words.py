"""Datasets of random words: a document for each sequence, of lengths drawn from a histogram."""

import argparse
import json
import os
import random
import subprocess
import sys

from train_peer import VOCABULARY, draw_lengths

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def prepare(plenum, histogram, sequences, directory, max_length=512):
    """A dataset in `directory`/data; returns its path. Longer sequences are cut."""
    words = [f"w{i}" for i in range(VOCABULARY - len(SPECIAL))]
    vocabulary, text = os.path.join(directory, "vocab.txt"), os.path.join(directory, "text.jsonl")
    with open(vocabulary, "w", encoding="ascii") as file:
        file.write("\n".join(SPECIAL + words) + "\n")
    draw = random.Random(1)
    with open(text, "w", encoding="ascii") as file:
        for length in draw_lengths(histogram, sequences, 1, 1)[0]:
            length = min(length, max_length)
            file.write(json.dumps({"text": " ".join(draw.choices(words, k=max(1, length - 2)))}) + "\n")
    data = os.path.join(directory, "data")
    command = [plenum, "prepare", text, "--output", data, "--vocab", vocabulary, "--max-length", str(max_length),
               "--holdout", "0"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"this failed: {' '.join(command)}\n{done.stdout}")
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plenum", default="build/plenum")
    parser.add_argument("--histogram", required=True, help="line i: the number of sequences of length i")
    parser.add_argument("--sequences", type=int, default=4000)
    parser.add_argument("--max-length", type=int, default=512)
    parser.add_argument("--output", required=True, help="a directory; the dataset is DIR/data")
    options = parser.parse_args()
    os.makedirs(options.output, exist_ok=True)
    print(prepare(options.plenum, options.histogram, options.sequences, options.output, options.max_length))


if __name__ == "__main__":
    main()
