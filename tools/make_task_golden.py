#!/usr/bin/env python3
"""Writes what Hugging Face's BERTs with the head of a task compute into tests/golden/tasks.safetensors, for tests that
run without Python: logits, loss and every gradient of one tiny encoder with each of five heads, on sequences of
different lengths, all computed in float64 and without dropout.

Sequences are rows of a padded batch, but for question answering, where transformers' softmax would see padding: there
each is computed by itself, and the loss is the mean over sequences.

Weights are rounded to bfloat16 first, so that they are exact in every precision and small in the file.
"""

import pathlib

import torch
import transformers
from safetensors.torch import save_file

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/tasks.safetensors"
LENGTHS = [20, 2, 9, 1, 13, 6]
NUM_CHOICES = 3
VOCABULARY = 53


def make_model(architecture, num_labels):
    """The encoder and the pooler are the same for each architecture: weights depend on their names alone."""
    config = transformers.BertConfig(vocab_size=VOCABULARY, hidden_size=16, num_hidden_layers=2,
                                     num_attention_heads=2, intermediate_size=24, max_position_embeddings=20,
                                     type_vocab_size=2, hidden_dropout_prob=0.0,
                                     attention_probs_dropout_prob=0.0, num_labels=num_labels,
                                     attn_implementation="eager")
    model = getattr(transformers, architecture)(config).double().eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            generator = torch.Generator().manual_seed(sum(map(ord, name)) + len(parameter.flatten()))
            value = torch.randn(parameter.shape, generator=generator) * (0.3 if "bert." in name else 0.5)
            parameter.copy_((1 + value if name.endswith("LayerNorm.weight") else value).bfloat16())
    return model


def make_inputs():
    generator = torch.Generator().manual_seed(11)
    shape = (len(LENGTHS), max(LENGTHS))
    ids, segments, mask = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    for row, length in enumerate(LENGTHS):
        mask[row, :length] = 1
        ids[row, :length] = torch.randint(1, VOCABULARY, (length,), generator=generator)
        segments[row, length // 2 + 1:length] = 1
    return {"input_ids": ids, "token_type_ids": segments, "attention_mask": mask}


def first_rows():
    return torch.tensor([0, *LENGTHS[:-1]]).cumsum(0)


def of_sequences(model, inputs, labels):
    output = model(**inputs, labels=labels)
    return output.logits, output.loss, first_rows(), labels


def classification(inputs):
    model = make_model("BertForSequenceClassification", 3)
    return model, *of_sequences(model, inputs, torch.tensor([2, 0, 1, 1, 0, 2]))


def regression(inputs):
    model = make_model("BertForSequenceClassification", 1)
    labels = torch.tensor([0.5, -2.25, 4.0, 1.75, 0.0, -0.375], dtype=torch.float64)
    return model, *of_sequences(model, inputs, labels)


def token_classification(inputs):
    """Every token but each third begins a word."""
    model = make_model("BertForTokenClassification", 4)
    real = inputs["attention_mask"].bool()
    rows = torch.arange(sum(LENGTHS))
    of_rows = torch.where(rows % 3 != 2, rows * 7 % 4, -100)
    labels = torch.full(real.shape, -100)
    labels[real] = of_rows
    output = model(**inputs, labels=labels)
    is_labelled = of_rows >= 0
    return model, output.logits[real][is_labelled], output.loss, rows[is_labelled], of_rows[is_labelled]


def question_answering(inputs):
    """Labels are where the answer of each sequence starts and ends; the third has none, so it is of the first token."""
    model = make_model("BertForQuestionAnswering", 2)
    spans = torch.tensor([[15, 18], [1, 1], [0, 0], [0, 0], [2, 12], [4, 5]])
    logits, losses = [], []
    for row, length in enumerate(LENGTHS):
        output = model(**{name: value[row:row + 1, :length] for name, value in inputs.items()},
                       start_positions=spans[row, :1], end_positions=spans[row, 1:])
        logits.append(torch.stack([output.start_logits[0], output.end_logits[0]], dim=1))
        losses.append(output.loss)
    return model, torch.cat(logits), torch.stack(losses).mean(), torch.arange(sum(LENGTHS)), spans


def multiple_choice(inputs):
    """Labels are the right choice of each example."""
    model = make_model("BertForMultipleChoice", 2)
    labels = torch.tensor([2, 0])
    grouped = {name: value.view(-1, NUM_CHOICES, value.shape[1]) for name, value in inputs.items()}
    output = model(**grouped, labels=labels)
    return model, output.logits.view(-1, 1), output.loss, first_rows(), labels


TASKS = [classification, regression, token_classification, question_answering, multiple_choice]


def main():
    torch.set_num_threads(1)
    inputs = make_inputs()
    real = inputs["attention_mask"].bool()
    position = torch.arange(max(LENGTHS)).expand_as(inputs["input_ids"])
    tensors = {
        "lengths": torch.tensor(LENGTHS, dtype=torch.int32),
        "ids": inputs["input_ids"][real].int(),
        "segments": inputs["token_type_ids"][real].int(),
        "positions": position[real].int(),
    }
    for task in TASKS:
        name = task.__name__.replace("_", "-")
        model, logits, loss, rows, labels = task(inputs)
        loss.backward()
        tensors[f"{name}/rows"] = rows.int()
        tensors[f"{name}/labels"] = labels.float() if labels.is_floating_point() else labels.int()
        tensors[f"{name}/logits"] = logits.detach().float().reshape(len(rows), -1)
        tensors[f"{name}/loss"] = loss.detach().reshape(1)
        for parameter_name, parameter in model.named_parameters():
            is_shared = parameter_name.startswith("bert.")
            weight = f"{'' if is_shared else name + '/'}weight:{parameter_name}"
            value = parameter.detach().bfloat16()
            assert weight not in tensors or torch.equal(tensors[weight], value), weight
            tensors[weight] = value
            tensors[f"{name}/gradient:{parameter_name}"] = parameter.grad.float()
        print(f"{name}: loss {loss.item():.6f}")
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, GOLDEN)
    print(f"{GOLDEN}: {GOLDEN.stat().st_size} bytes, torch {torch.__version__}, "
          f"transformers {transformers.__version__}")


if __name__ == "__main__":
    main()
