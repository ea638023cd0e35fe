#!/usr/bin/env python3
"""Writes what Hugging Face's BertForPreTraining computes into tests/golden/bert.safetensors, for tests that run
without Python: a tiny BERT with random weights on sequences of different lengths. Logits, losses, every gradient,
the losses of ten AdamW steps and the norms of the final weights, all computed in float64.

Weights are rounded to bfloat16 first, so that they are exact in every precision and small in the file.
"""

import pathlib

import torch
from safetensors.torch import save_file
from transformers import BertConfig, BertForPreTraining

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/bert.safetensors"
LENGTHS = [24, 2, 13, 1, 7]
NUM_STEPS = 10
LEARNING_RATE, DECAY, CLIP_NORM = 1e-3, 0.01, 1.0


def make_model():
    config = BertConfig(vocab_size=97, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=64, max_position_embeddings=24, type_vocab_size=2,
                        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
                        attn_implementation="eager")
    model = BertForPreTraining(config).double().eval()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            spread = 0.3 if "embeddings" in name else 0.15
            value = torch.randn(parameter.shape, generator=generator) * spread
            if name.endswith("LayerNorm.weight"):
                value = 1 + value
            parameter.copy_(value.bfloat16())
    return model


def make_inputs():
    """Sequences as rows of a padded batch, each with a second segment where it is long enough."""
    generator = torch.Generator().manual_seed(11)
    shape = (len(LENGTHS), max(LENGTHS))
    ids, segments, mask = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    labels = torch.full(shape, -100)
    for row, length in enumerate(LENGTHS):
        mask[row, :length] = 1
        ids[row, :length] = torch.randint(1, 97, (length,), generator=generator)
        segments[row, length // 2 + 1:length] = 1
        num_masked = max(1, round(0.25 * length))
        for position in torch.randperm(length, generator=generator)[:num_masked].tolist():
            labels[row, position] = torch.randint(1, 97, (1,), generator=generator)
    next_sentence = torch.randint(0, 2, (len(LENGTHS),), generator=generator)
    return ids, segments, mask, labels, next_sentence


def run(model, inputs):
    """Logits at the masked positions, next-sentence logits, and both losses."""
    ids, segments, mask, labels, next_sentence = inputs
    output = model(input_ids=ids, token_type_ids=segments, attention_mask=mask)
    masked_logits = output.prediction_logits[labels >= 0]
    masked_loss = torch.nn.functional.cross_entropy(masked_logits, labels[labels >= 0])
    next_sentence_loss = torch.nn.functional.cross_entropy(output.seq_relationship_logits, next_sentence)
    return masked_logits, output.seq_relationship_logits, masked_loss, next_sentence_loss


def parameters_of(model):
    """By the name that Plenum gives them: the decoder is the word embedding, its bias belongs to the head."""
    named = dict(model.named_parameters())
    if "cls.predictions.decoder.bias" in named:
        named["cls.predictions.bias"] = named.pop("cls.predictions.decoder.bias")
    assert "cls.predictions.decoder.weight" not in named
    return named


def is_decayed(name):
    return not name.endswith("bias") and "LayerNorm" not in name


def train(model, inputs):
    named = parameters_of(model)
    optimizer = torch.optim.AdamW([
        {"params": [p for name, p in named.items() if is_decayed(name)], "weight_decay": DECAY},
        {"params": [p for name, p in named.items() if not is_decayed(name)], "weight_decay": 0.0},
    ], lr=LEARNING_RATE)
    losses = []
    for _ in range(NUM_STEPS):
        optimizer.zero_grad()
        _, _, masked_loss, next_sentence_loss = run(model, inputs)
        (masked_loss + next_sentence_loss).backward()
        norm = torch.sqrt(sum((p.grad ** 2).sum() for p in named.values()))
        for parameter in named.values():
            parameter.grad *= min(1.0, CLIP_NORM / norm.item())
        optimizer.step()
        losses.append([masked_loss.item(), next_sentence_loss.item(), norm.item()])
    return torch.tensor(losses, dtype=torch.float64)


def main():
    torch.set_num_threads(1)
    model, inputs = make_model(), make_inputs()
    ids, segments, mask, labels, next_sentence = inputs
    real, is_masked = mask.bool(), labels >= 0
    position = torch.arange(max(LENGTHS)).expand_as(ids)
    tensors = {
        "lengths": torch.tensor(LENGTHS, dtype=torch.int32),
        "ids": ids[real].int(),
        "segments": segments[real].int(),
        "positions": position[real].int(),
        "masked_rows": is_masked[real].nonzero().flatten().int(),
        "masked_labels": labels[is_masked].int(),
        "next_sentence_labels": next_sentence.int(),
    }
    for name, parameter in parameters_of(model).items():
        tensors[f"weight:{name}"] = parameter.detach().bfloat16()

    masked_logits, next_sentence_logits, masked_loss, next_sentence_loss = run(model, inputs)
    (masked_loss + next_sentence_loss).backward()
    tensors["masked_logits"] = masked_logits.detach().float()
    tensors["next_sentence_logits"] = next_sentence_logits.detach().float()
    for name, parameter in parameters_of(model).items():
        tensors[f"gradient:{name}"] = parameter.grad.float()

    tensors["steps"] = train(model, inputs)
    for name, parameter in parameters_of(model).items():
        tensors[f"final_norm:{name}"] = parameter.detach().norm().reshape(1)
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, GOLDEN)
    print(f"{GOLDEN}: {GOLDEN.stat().st_size} bytes, losses {tensors['steps'].tolist()}")


if __name__ == "__main__":
    main()
