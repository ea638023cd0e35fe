#!/usr/bin/env python3
"""Shows that Hugging Face transformers takes an exported directory as its own.

    verify_export.py DIRECTORY ...

Loads each with the architecture that its config.json names and fails (exit code 1) on any warning, on a tensor
that is missing, unexpected or of another shape, and if transformers, saving it again, writes other weights or other
labels. A fine-tuned model must also be what the AutoModel of its task makes of the directory.
"""

import json
import logging
import pathlib
import sys
import tempfile

import transformers


AUTO_MODELS = {
    "BertForSequenceClassification": transformers.AutoModelForSequenceClassification,
    "BertForTokenClassification": transformers.AutoModelForTokenClassification,
    "BertForQuestionAnswering": transformers.AutoModelForQuestionAnswering,
    "BertForMultipleChoice": transformers.AutoModelForMultipleChoice,
}


class Recorder(logging.Handler):
    """Keeps warnings."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


def problems_of(directory):
    recorder = Recorder()
    logger = logging.getLogger("transformers")
    logger.addHandler(recorder)
    config = json.loads((directory / "config.json").read_text())
    name = config["architectures"][0]
    loader = AUTO_MODELS.get(name, getattr(transformers, name))
    model, info = loader.from_pretrained(directory, output_loading_info=True)
    transformers.AutoTokenizer.from_pretrained(directory)
    logger.removeHandler(recorder)
    problems = list(recorder.messages)
    problems += [f"{kind}: {sorted(map(str, tensors))}" for kind, tensors in info.items() if tensors]
    if type(model).__name__ != name:
        problems.append(f"{loader.__name__} makes a {type(model).__name__} of a {name}")
    labels = config.get("id2label", {})
    if labels and {str(i): label for i, label in model.config.id2label.items()} != labels:
        problems.append(f"the labels are {model.config.id2label}, not {labels}")
    for key in ("label2id", "problem_type", "classifier_dropout"):
        if config.get(key) is not None and getattr(model.config, key) != config[key]:
            problems.append(f"{key} is {getattr(model.config, key)}, not {config[key]}")
    with tempfile.TemporaryDirectory() as copy:
        model.save_pretrained(copy)
        weights = "model.safetensors"
        if (pathlib.Path(copy) / weights).read_bytes() != (directory / weights).read_bytes():
            problems.append(f"transformers saves another {weights}")
        saved = transformers.AutoConfig.from_pretrained(copy)
        for key in ("id2label", "label2id", "problem_type", "classifier_dropout"):
            if getattr(saved, key) != getattr(model.config, key):
                problems.append(f"transformers saves {key} {getattr(saved, key)}, not {getattr(model.config, key)}")
    return problems


def main(arguments):
    if not arguments:
        print(__doc__, file=sys.stderr)
        return 2
    transformers.logging.set_verbosity_warning()
    transformers.logging.disable_progress_bar()
    failed = False
    for argument in arguments:
        problems = problems_of(pathlib.Path(argument))
        failed = failed or bool(problems)
        print(f"{argument}: {'; '.join(problems) or 'loads without a warning, saves the same bytes'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
