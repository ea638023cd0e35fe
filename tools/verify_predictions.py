#!/usr/bin/env python3
"""Shows that a fine-tuned directory predicts the same in Hugging Face transformers as in Plenum.

    verify_predictions.py DIRECTORY EXAMPLES.jsonl PREDICTIONS.jsonl [--max-length N] [--tolerance X]

EXAMPLES and PREDICTIONS have a line for each example, in the same order. An example is texts, which the directory's
tokenizer encodes:

    classification, regression   {"text": …} or {"text": …, "pair": …}
    token-classification         {"words": […]}
    question-answering           {"text": QUESTION, "pair": CONTEXT}
    multiple-choice              {"text": …, "choices": […]}

or a sequence itself: {"ids": […], "segments": […]}, for multiple-choice a list of each for the choices. Other usual names
of fields are known too: see FIELDS. A prediction has any of these, each of which is compared:

    "logits"         of the rows that the head reads: the example, the choices, the words or all tokens
    "probabilities"  of the classes, by their names or their ids, or of the choices
    "label"          name or id of the class; of multiple-choice the number of the choice
    "tags"           names of the words' classes
    "score"          the number of regression
    "answer"         text of the best span; only where the context fits into one sequence

Texts with more than N tokens (what the model can read, if not given) are truncated as Plenum does, the longer one of a
pair first; words and contexts that do not fit are refused, since Plenum reads them in windows. Exit code 1 names the
first difference of each kind.
"""

import argparse
import json
import pathlib
import sys

import torch
import transformers

FIELDS = {
    "text": ["text", "sentence", "sentence1", "question", "premise", "prompt", "sent1"],
    "pair": ["pair", "text_pair", "sentence2", "context", "hypothesis"],
    "words": ["words", "tokens"],
    "choices": ["choices", "endings"],
}
LOADERS = {
    "BertForSequenceClassification": transformers.AutoModelForSequenceClassification,
    "BertForTokenClassification": transformers.AutoModelForTokenClassification,
    "BertForQuestionAnswering": transformers.AutoModelForQuestionAnswering,
    "BertForMultipleChoice": transformers.AutoModelForMultipleChoice,
}


def read_lines(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line.strip()]


def field(example, what):
    return next((example[name] for name in FIELDS[what] if name in example), None)


class Verifier:
    """What transformers makes of examples, and how that differs from predictions."""

    def __init__(self, directory, max_length, tolerance):
        config = json.loads((pathlib.Path(directory) / "config.json").read_text())
        self.architecture = config["architectures"][0]
        if self.architecture not in LOADERS:
            raise SystemExit(f"{directory} is not fine-tuned for a task: it is a {self.architecture}")
        self.model = LOADERS[self.architecture].from_pretrained(directory).float().eval()
        if type(self.model).__name__ != self.architecture:
            raise SystemExit(f"{directory} loads as a {type(self.model).__name__}, not a {self.architecture}")
        self.labels = {str(i): label for i, label in self.model.config.id2label.items()}
        if "id2label" in config and self.labels != config["id2label"]:
            raise SystemExit(f"{directory} has labels {self.labels} in transformers, not {config['id2label']}")
        self.max_length = max_length or self.model.config.max_position_embeddings
        self.tolerance = tolerance
        self.tokenizer = None
        self.directory = directory
        self.differences = {}
        self.compared = {}

    def encode(self, example):
        """Ids, segments, and the encoding of texts."""
        if "ids" in example:
            return example["ids"], example["segments"], None
        if self.tokenizer is None:
            self.tokenizer = transformers.AutoTokenizer.from_pretrained(self.directory)
        text, pair, words, choices = (field(example, what) for what in FIELDS)
        if choices is not None and self.architecture == "BertForMultipleChoice":
            encodings = [self.tokenize(text, choice) for choice in choices]
            return [e["input_ids"] for e in encodings], [e["token_type_ids"] for e in encodings], None
        if self.architecture == "BertForTokenClassification":
            encoding = self.tokenizer(words, is_split_into_words=True)
        elif self.architecture == "BertForQuestionAnswering":
            encoding = self.tokenizer(text, pair, return_offsets_mapping=True)
        else:
            encoding = self.tokenize(text, pair)
        if len(encoding["input_ids"]) > self.max_length:
            raise SystemExit(f"an example has {len(encoding['input_ids'])} tokens, which are no one sequence of "
                             f"{self.max_length}; leave it out")
        return encoding["input_ids"], encoding["token_type_ids"], encoding

    def tokenize(self, text, pair):
        return self.tokenizer(text, pair, truncation="longest_first", max_length=self.max_length)

    def logits(self, ids, segments):
        """Of all rows, each sequence by itself."""
        sequences = zip(ids, segments) if isinstance(ids[0], list) else [(ids, segments)]
        rows = []
        for sequence, of_sequence in sequences:
            inputs = {"input_ids": torch.tensor([sequence]), "token_type_ids": torch.tensor([of_sequence]),
                      "attention_mask": torch.ones((1, len(sequence)), dtype=torch.long)}
            if self.architecture == "BertForMultipleChoice":
                inputs = {name: value[None] for name, value in inputs.items()}
            with torch.no_grad():
                output = self.model(**inputs)
            if self.architecture == "BertForQuestionAnswering":
                rows.append(torch.stack([output.start_logits[0], output.end_logits[0]], dim=1))
            else:
                rows.append(output.logits[0] if output.logits.dim() == 3 else output.logits)
        return torch.cat(rows)

    def compare(self, what, place, theirs, ours, is_same):
        self.compared[what] = self.compared.get(what, 0) + 1
        if not is_same:
            self.differences.setdefault(what, f"example {place}: {what} {ours} in Plenum, {theirs} in transformers")

    def compare_numbers(self, what, place, theirs, ours):
        theirs, ours = torch.as_tensor(theirs).flatten().double(), torch.tensor(ours, dtype=torch.float64).flatten()
        is_same = theirs.shape == ours.shape and torch.allclose(theirs, ours, rtol=self.tolerance, atol=self.tolerance)
        self.compare(what, place, theirs.tolist(), ours.tolist(), is_same)

    def check_sequence_labels(self, place, logits, prediction):
        if self.architecture == "BertForMultipleChoice":
            logits, names = logits[:, 0], [str(i) for i in range(len(logits))]
        else:
            logits, names = logits[0], [self.labels[str(i)] for i in range(len(logits[0]))]
        probabilities = logits.softmax(0)
        if "score" in prediction:
            self.compare_numbers("score", place, logits, [prediction["score"]])
        if "probabilities" in prediction:
            ours = prediction["probabilities"]
            if isinstance(ours, dict):
                ours = [ours[name] for name in names]
            self.compare_numbers("probabilities", place, probabilities, ours)
        if "label" in prediction and len(names) > 1:
            best = probabilities.argmax().item()
            chosen = str(prediction["label"])
            index = names.index(chosen) if chosen in names else int(chosen)
            # What is as probable to rounding may be either.
            is_same = index == best or probabilities[best] - probabilities[index] <= self.tolerance
            self.compare("label", place, names[best], prediction["label"], bool(is_same))

    def check_tags(self, place, logits, encoding, prediction):
        words = encoding.word_ids()
        first = [row for row, word in enumerate(words) if word is not None and words.index(word) == row]
        if "logits" in prediction:
            self.compare_numbers("logits", place, logits[first], prediction["logits"])
        if "tags" in prediction:
            theirs = [self.labels[str(i)] for i in logits[first].argmax(1).tolist()]
            self.compare("tags", place, theirs, prediction["tags"], theirs == prediction["tags"])

    def check_answer(self, place, logits, encoding, context, prediction, max_answer_length=30):
        rows = [row for row, part in enumerate(encoding.sequence_ids()) if part == 1]
        spans = [(logits[start, 0] + logits[end, 1], start, end) for start in rows for end in rows
                 if start <= end < start + max_answer_length]
        best, start, end = max(spans)
        offsets = encoding["offset_mapping"]
        answer = context[offsets[start][0]:offsets[end][1]]
        is_none = prediction["answer"] == "" and logits[0].sum() >= best
        self.compare("answer", place, answer, prediction["answer"], is_none or answer == prediction["answer"])

    def check(self, place, example, prediction):
        ids, segments, encoding = self.encode(example)
        logits = self.logits(ids, segments)
        if self.architecture == "BertForTokenClassification" and encoding is not None:
            return self.check_tags(place, logits, encoding, prediction)
        if "logits" in prediction:
            self.compare_numbers("logits", place, logits, prediction["logits"])
        if self.architecture == "BertForQuestionAnswering":
            if encoding is not None and "answer" in prediction:
                self.check_answer(place, logits, encoding, field(example, "pair"), prediction)
        elif self.architecture != "BertForTokenClassification":
            self.check_sequence_labels(place, logits, prediction)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory")
    parser.add_argument("examples")
    parser.add_argument("predictions")
    parser.add_argument("--max-length", type=int)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    given = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    examples, predictions = read_lines(given.examples), read_lines(given.predictions)
    if len(examples) != len(predictions):
        raise SystemExit(f"{len(predictions)} predictions of {len(examples)} examples")
    verifier = Verifier(given.directory, given.max_length, given.tolerance)
    for place, (example, prediction) in enumerate(zip(examples, predictions)):
        verifier.check(place, example, prediction)
    if not verifier.compared:
        raise SystemExit("predictions have nothing to compare")
    for difference in verifier.differences.values():
        print(f"{given.directory}: {difference}")
    if not verifier.differences:
        compared = ", ".join(f"{count} {what}" for what, count in verifier.compared.items())
        print(f"{given.directory}: {verifier.architecture} predicts the same: {compared}")
    return 1 if verifier.differences else 0


if __name__ == "__main__":
    sys.exit(main())
