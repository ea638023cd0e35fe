#!/usr/bin/env python3
"""Writes what sentence-transformers' pooling makes of the tiny BERT of make_bert_golden.py into
tests/golden/vectors.safetensors, for tests that run without Python: mean and [CLS] vectors of its sequences, as they are
and of length 1, computed in float64.
"""

import pathlib

import torch
from safetensors.torch import save_file
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling

from make_bert_golden import make_inputs, make_model

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/vectors.safetensors"


def main():
    torch.set_num_threads(1)
    model = make_model().bert
    ids, segments, mask, _, _ = make_inputs()
    with torch.no_grad():
        rows = model(input_ids=ids, token_type_ids=segments, attention_mask=mask).last_hidden_state
    tensors = {}
    for mode in ("mean", "cls"):
        features = {"token_embeddings": rows, "attention_mask": mask}
        features = Pooling(rows.shape[-1], pooling_mode=mode)(features)
        tensors[mode] = features["sentence_embedding"].float()
        tensors[f"{mode}_normalized"] = Normalize()(features)["sentence_embedding"].float()
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, GOLDEN)
    print(f"{GOLDEN}: {GOLDEN.stat().st_size} bytes")


if __name__ == "__main__":
    main()
