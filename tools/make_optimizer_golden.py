#!/usr/bin/env python3
"""Writes what PyTorch's AdamW and Hugging Face's schedules do into tests/golden/optimizer.json, for tests that
run without Python: ten steps of AdamW on two small tensors, one of them without decay, and learning rates of
some schedules at every step."""

import json
import pathlib

import torch
import transformers

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/optimizer.json"
ELEMENTS = 9
STEPS = 10
HYPER = {"lr": 0.01, "beta1": 0.9, "beta2": 0.98, "epsilon": 1e-6, "decay": 0.1}


def numbers(tensor):
    return tensor.detach().tolist()


def adamw():
    torch.manual_seed(1)
    tensors = [torch.nn.Parameter(torch.randn(ELEMENTS)) for _ in range(2)]
    result = {"hyper": HYPER, "begin": [numbers(t) for t in tensors], "gradients": [], "weights": []}
    optimizer = torch.optim.AdamW(
        [{"params": [tensors[0]], "weight_decay": HYPER["decay"]}, {"params": [tensors[1]], "weight_decay": 0.0}],
        lr=HYPER["lr"],
        betas=(HYPER["beta1"], HYPER["beta2"]),
        eps=HYPER["epsilon"],
    )
    for _ in range(STEPS):
        for tensor in tensors:
            tensor.grad = torch.randn(ELEMENTS)
        result["gradients"].append([numbers(t.grad) for t in tensors])
        optimizer.step()
        result["weights"].append([numbers(t) for t in tensors])
    return result


def rates(make_schedule, total):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=1.0)
    schedule = make_schedule(optimizer)
    result = []
    for _ in range(total + 1):
        result.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    return result


def schedules():
    warmup, total, decay = 7, 40, 12
    return {
        "warmup": warmup,
        "total": total,
        "decay": decay,
        "constant": rates(lambda o: transformers.get_constant_schedule_with_warmup(o, warmup), total),
        "linear": rates(lambda o: transformers.get_linear_schedule_with_warmup(o, warmup, total), total),
        "cosine": rates(lambda o: transformers.get_cosine_schedule_with_warmup(o, warmup, total), total),
        "wsd": rates(
            lambda o: transformers.get_wsd_schedule(
                o, warmup, decay, num_stable_steps=total - warmup - decay, decay_type="1-sqrt"
            ),
            total,
        ),
    }


def main():
    golden = {
        "made_by": f"tools/make_optimizer_golden.py, torch {torch.__version__.split('+')[0]}, "
        f"transformers {transformers.__version__}",
        "adamw": adamw(),
        "schedules": schedules(),
    }
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
