#!/usr/bin/env python3
"""Writes what Hugging Face `tokenizers` does into tests/golden/, for tests that run without Python.

tokenizer_cases.json: a small vocabulary trained on tools/mixed_text.py, and the ids of a few hundred texts.
unicode_checksums.json: for six settings of the rules, the CRC-32 of the words of every code point in two
contexts, one checksum for every 4,096 code points.
"""

import argparse
import json
import pathlib
import random
import sys
import zlib

import tokenizers
from tokenizers import BertWordPieceTokenizer
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

import mixed_text

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden"
BLOCK = 0x1000
RULES = [
    dict(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True),
    dict(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=False),
    dict(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=True),
    dict(clean_text=False, handle_chinese_chars=True, strip_accents=True, lowercase=False),
    dict(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=True),
    dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False),
]


def contexts(character):
    """Alone between letters, and between two marks that canonical ordering would swap."""
    return ["a" + character + "B", "a\u302e" + character + "\U0001d165b"]


def unicode_checksums(rules):
    normalizer, splitter = BertNormalizer(**rules), BertPreTokenizer()
    checksums = []
    for first in range(0, 0x110000, BLOCK):
        checksum = 0
        for cp in range(first, first + BLOCK):
            if 0xD800 <= cp < 0xE000:
                continue
            for text in contexts(chr(cp)):
                words = [word for word, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text))]
                checksum = zlib.crc32(("\n".join(words) + "\n\n").encode(), checksum)
        checksums.append(checksum)
    return checksums


def train(corpus, size):
    tokenizer = BertWordPieceTokenizer()
    tokenizer.train_from_iterator(corpus, vocab_size=size, min_frequency=0, show_progress=False)
    return [token for token, _ in sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])]


def tokenizer_cases():
    corpus = mixed_text.SENTENCES * 2 + [text.upper() for text in mixed_text.SENTENCES]
    vocabulary = train(corpus, 900)
    rng = random.Random(7)
    texts = mixed_text.SENTENCES + ["", " ", "\u200b", "x" * 100, "x" * 101, "e\u0301" * 100, "ж" * 17 + "."]
    texts += [mixed_text.mixed_line(rng)[:120] for _ in range(150)]
    settings = []
    for rules in RULES[:4]:
        tokenizer = BertWordPieceTokenizer({t: i for i, t in enumerate(vocabulary)}, **rules)
        ids = [tokenizer.encode(text, add_special_tokens=False).ids for text in texts]
        decoded = [tokenizer.decode(row, skip_special_tokens=False) for row in ids] if rules is RULES[0] else None
        settings.append(dict(rules=rules, ids=ids, decoded=decoded))
    return dict(corpus=corpus, vocabulary=vocabulary, texts=texts, settings=settings)


def write(name, value):
    (GOLDEN / name).write_text(json.dumps(value, ensure_ascii=False, separators=(",", ":")) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare the checksums instead of writing")
    options = parser.parse_args()
    if not options.check:
        write("tokenizer_cases.json", tokenizer_cases())
    found = dict(tokenizers=tokenizers.__version__,
                 settings=[dict(rules=rules, checksums=unicode_checksums(rules)) for rules in RULES])
    if options.check:
        known = json.loads((GOLDEN / "unicode_checksums.json").read_text())
        if known["settings"] != found["settings"]:
            sys.exit(f"tests/golden/unicode_checksums.json is not what tokenizers {tokenizers.__version__} gives")
        return
    write("unicode_checksums.json", found)


if __name__ == "__main__":
    main()
