#!/usr/bin/env python3
"""Writes what scikit-learn, SciPy, seqeval and SQuAD's script score into tests/golden/scores.json.

Made predictions of every kind, with the degenerate ones that decide what a quotient without a denominator is.
"""

import json
import pathlib
import random
import re
import string
import warnings
from collections import Counter

from scipy.stats import pearsonr, spearmanr
from seqeval.metrics import f1_score as entity_f1
from seqeval.metrics import precision_score as entity_precision
from seqeval.metrics import recall_score as entity_recall
from seqeval.metrics.sequence_labeling import get_entities
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden"


def class_cases(rng):
    cases = [([0], [0]), ([1], [1]), ([0, 0, 0], [1, 1, 1]), ([1, 1, 0, 0], [1, 1, 0, 0]), ([1, 1], [0, 1]),
             ([2, 2, 2], [2, 2, 2])]
    for _ in range(40):
        classes = rng.choice([2, 2, 3, 7])
        count = rng.choice([2, 5, 30, 200])
        expected = [rng.randrange(classes) for _ in range(count)]
        cases.append(([e if rng.random() < 0.6 else rng.randrange(classes) for e in expected], expected))
    for predicted, expected in cases:
        yield dict(predicted=predicted, expected=expected, accuracy=accuracy_score(expected, predicted),
                   f1=f1_score([e == 1 for e in expected], [p == 1 for p in predicted], zero_division=0),
                   f1_macro=f1_score(expected, predicted, average="macro", zero_division=0),
                   matthews=matthews_corrcoef(expected, predicted))


def number_cases(rng):
    for index in range(30):
        count = rng.choice([2, 3, 10, 200])
        coarse = index % 2 == 0  # many ties
        expected = [rng.randrange(6) if coarse else rng.gauss(0, 1) for _ in range(count)]
        expected[0], expected[1] = 0, 1  # never all equal
        predicted = [e * rng.choice([1, -1]) + rng.gauss(0, 0.5) for e in expected]
        if coarse:
            predicted = [float(round(p)) for p in predicted]
            predicted[0], predicted[1] = 2.0, 4.0
        shift = 10.0 ** rng.randrange(-3, 7)
        predicted = [p + shift for p in predicted]
        yield dict(predicted=predicted, expected=expected, pearson=float(pearsonr(predicted, expected)[0]),
                   spearman=float(spearmanr(predicted, expected)[0]))


def random_tags(rng, places, types, length):
    tags = [rng.choice(places) for _ in range(length)]
    return ["O" if tag == "O" else f"{tag}-{rng.choice(types)}" for tag in tags]


def entity_cases(rng):
    for places in ["BIO", "BIOO", "IO", "BIESO", "BIESOOO"]:
        for _ in range(12):
            types = rng.choice([["PER"], ["PER", "LOC"], ["PER", "LOC", "X-Y"]])
            expected = [random_tags(rng, places, types, rng.randrange(1, 12)) for _ in range(rng.randrange(1, 6))]
            predicted = [[t if rng.random() < 0.7 else random_tags(rng, places, types, 1)[0] for t in tags]
                         for tags in expected]
            yield dict(predicted=predicted, expected=expected,
                       entities=[[type_, begin, end + 1] for type_, begin, end in get_entities(expected[0])],
                       precision=float(entity_precision(expected, predicted, zero_division=0)),
                       recall=float(entity_recall(expected, predicted, zero_division=0)),
                       f1=float(entity_f1(expected, predicted, zero_division=0)))
    yield dict(predicted=[["O", "O"]], expected=[["O", "O"]], entities=[], precision=0.0, recall=0.0, f1=0.0)


# SQuAD's evaluation script, version 2.0.
def normalize_answer(text):
    text = "".join(ch for ch in text.lower() if ch not in set(string.punctuation))
    text = re.compile(r"\b(a|an|the)\b", re.UNICODE).sub(" ", text)
    return text.split()


def squad_f1(gold, predicted):
    gold, predicted = normalize_answer(gold), normalize_answer(predicted)
    same = sum((Counter(gold) & Counter(predicted)).values())
    if not gold or not predicted:
        return float(gold == predicted)
    if same == 0:
        return 0.0
    precision, recall = same / len(predicted), same / len(gold)
    return 2 * precision * recall / (precision + recall)


ANSWERS = ["", "the", "The  Eiffel Tower", "eiffel tower", "a Tower of  Eiffel", "Eiffel Tower, Paris", "U.S.A.",
           "usa", "1,000 men", "an 1000 Men", "Denver Broncos", "broncos", "THE\u00a0Wörter", "wörter", "\u2013the\u2013cat",
           "the\u0301 cat", "caf\u00e9 a la carte", "CAF\u00c9 la carte", "\u4e00\u4e8c the\u4e09", "another thesis", "tower tower",
           "tower", "don't", "dont", "a.an.the", "x\x1cy", "x y", "\u0130stanbul", "an_a", "a-b", "\u00bd the \u00bd", "8\u00b2 a"]


def answer_cases(rng):
    words = [dict(text=text, words=normalize_answer(text)) for text in ANSWERS]
    pairs = []
    for _ in range(200):
        predicted, golds = rng.choice(ANSWERS), [rng.choice(ANSWERS) for _ in range(rng.randrange(0, 4))]
        of = golds or [""]
        pairs.append(dict(predicted=predicted, expected=golds,
                          exact_match=max(float(normalize_answer(g) == normalize_answer(predicted)) for g in of),
                          f1=max(squad_f1(g, predicted) for g in of)))
    return dict(words=words, pairs=pairs)


def main():
    rng = random.Random(20)
    warnings.simplefilter("ignore")
    scores = dict(classes=list(class_cases(rng)), numbers=list(number_cases(rng)), entities=list(entity_cases(rng)),
                  answers=answer_cases(rng))
    text = json.dumps(scores, ensure_ascii=True, separators=(",", ":"))
    (GOLDEN / "scores.json").write_text(text + "\n")


if __name__ == "__main__":
    main()
