#!/usr/bin/env python3
"""Writes how Hugging Face `tokenizers` lays out the examples of tasks into tests/golden/task_cases.json.

The vocabulary and the texts are those of tests/golden/tokenizer_cases.json. Places are counted in bytes. What
Hugging Face's run_qa does in Python, labels of windows and the choice among answers, is written out here.
"""

import json
import pathlib
import random

import numpy
from tokenizers import BertWordPieceTokenizer

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden"


def bytes_before(text):
    places = [0]
    for character in text:
        places.append(places[-1] + len(character.encode()))
    return places


def byte_offsets(text, offsets):
    places = bytes_before(text)
    return [[places[begin], places[end]] for begin, end in offsets]


def make_tokenizer(cases, rules):
    return BertWordPieceTokenizer({t: i for i, t in enumerate(cases["vocabulary"])}, **rules)


def offset_cases(cases):
    for setting in cases["settings"][:2] + cases["settings"][3:]:
        tokenizer = make_tokenizer(cases, setting["rules"])
        encoded = [tokenizer.encode(text, add_special_tokens=False) for text in cases["texts"]]
        yield dict(rules=setting["rules"],
                   offsets=[byte_offsets(t, e.offsets) for t, e in zip(cases["texts"], encoded)])


def pair_cases(tokenizer, texts, rng):
    for _ in range(80):
        first, second, max_length = rng.choice(texts), rng.choice(texts + [None]), rng.choice([5, 8, 9, 20, 33, 64, 512])
        tokenizer.enable_truncation(max_length, strategy="longest_first")
        encoded = tokenizer.encode(first, second)
        yield dict(first=first, second=second, max_length=max_length, ids=encoded.ids, segments=encoded.type_ids)
    tokenizer.no_truncation()


def word_cases(tokenizer, texts, rng):
    for _ in range(40):
        words = [word for word in " ".join(rng.sample(texts, 2)).split(" ") if tokenizer.encode(word, add_special_tokens=False).ids]
        if not words:
            continue
        encoded = tokenizer.encode(words, is_pretokenized=True)
        yield dict(words=words, ids=encoded.ids, word_ids=[-1 if w is None else w for w in encoded.word_ids])


def label_window(window, begin, end):
    """As prepare_train_features of run_qa, by characters."""
    if begin is None:
        return 0, 0
    context = [i for i, s in enumerate(window.sequence_ids) if s == 1]
    if not context:
        return 0, 0
    first, last = context[0], context[-1]
    if not (window.offsets[first][0] <= begin and window.offsets[last][1] >= end):
        return 0, 0
    while first < len(window.offsets) and window.offsets[first][0] <= begin and window.sequence_ids[first] == 1:
        first += 1
    while window.offsets[last][1] >= end and window.sequence_ids[last] == 1:
        last -= 1
    return first - 1, last + 1


def choose(windows, n_best, longest, may_lack):
    """As postprocess_qa_predictions of run_qa: the answer's characters and its probability."""
    null, found = None, []
    for window, start, end in windows:
        at_cls = start[0] + end[0]
        null = at_cls if null is None else min(null, at_cls)
        for s in numpy.argsort(start)[-1:-n_best - 1:-1].tolist():
            for e in numpy.argsort(end)[-1:-n_best - 1:-1].tolist():
                if window.sequence_ids[s] != 1 or window.sequence_ids[e] != 1 or e < s or e - s + 1 > longest:
                    continue
                found.append((start[s] + end[e], window.offsets[s][0], window.offsets[e][1]))
    found = sorted(found, key=lambda one: -one[0])[:n_best]
    if not found:
        return None
    if may_lack and null > found[0][0]:
        return None
    return found[0][1:]


def question_cases(tokenizer, texts, rng):
    noise = numpy.random.default_rng(3)
    texts = [text for text in texts if tokenizer.encode(text, add_special_tokens=False).ids]
    for _ in range(40):
        question, context = rng.choice(texts)[:40], " ".join(rng.sample(texts, rng.randrange(1, 5)))
        room = rng.choice([6, 17, 40, 400])
        stride = rng.randrange(0, room)
        max_length = room + 3 + len(tokenizer.encode(question, add_special_tokens=False).ids)
        begin = end = None
        if rng.random() < 0.8:
            begin = rng.randrange(len(context))
            end = min(len(context), begin + rng.randrange(1, 20))
        tokenizer.enable_truncation(max_length, stride=stride, strategy="only_second")
        encoded = tokenizer.encode(question, context)
        windows = [encoded] + encoded.overflowing
        tokenizer.no_truncation()
        logits = [(w, *(noise.normal(size=(2, len(w.ids))) * 4096).round().astype(int).tolist()) for w in windows]
        n_best, longest, may_lack = rng.choice([1, 3, 20]), rng.choice([1, 4, 30]), rng.random() < 0.5
        answer = choose(logits, n_best, longest, may_lack)
        places = bytes_before(context)
        # Logits are whole numbers of 1/4096, which are the same in float and double.
        yield dict(question=question, context=context, max_length=max_length, stride=stride,
                   answer=None if begin is None else [places[begin], context[begin:end]],
                   windows=[dict(ids=w.ids, labels=label_window(w, begin, end), start=s, end=e) for w, s, e in logits],
                   best_answers=n_best, max_answer_length=longest, may_lack_answer=may_lack,
                   prediction="" if answer is None else context[answer[0]:answer[1]])


def main():
    cases = json.loads((GOLDEN / "tokenizer_cases.json").read_text())
    rng = random.Random(5)
    tokenizer = make_tokenizer(cases, cases["settings"][0]["rules"])
    texts = [text for text in cases["texts"] if len(text) < 200]
    golden = dict(offsets=list(offset_cases(cases)), pairs=list(pair_cases(tokenizer, texts, rng)),
                  words=list(word_cases(tokenizer, texts, rng)), questions=list(question_cases(tokenizer, texts, rng)))
    (GOLDEN / "task_cases.json").write_text(json.dumps(golden, ensure_ascii=True, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
