#!/usr/bin/env python3
"""Writes what PyTorch's AdamW and Hugging Face's schedules do into tests/golden/optimizer.json, for tests that
run without Python: ten steps of AdamW on two small tensors, one of them without decay, five with a parameter group
of its own rate for each layer of a BERT, three of Muon and four of SOAP on a square, a tall and a wide matrix in double
precision, and learning rates of some schedules at every step."""

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


def depth_below_head(name, num_layers):
    """0 for heads (the pooler among them), 1 for the last layer, and so on down to the embeddings."""
    if name.startswith("bert.embeddings."):
        return num_layers + 1
    if name.startswith("bert.encoder.layer."):
        return num_layers - int(name.split(".")[3])
    return 0


def layer_decay():
    """A few elements of some tensors of a BERT of two layers, each a group: layer-wise learning-rate decay."""
    torch.manual_seed(4)
    num_layers, layer_decay, rate, decay = 2, 0.65, 0.01, 0.1
    names = ["bert.embeddings.word_embeddings.weight", "bert.embeddings.LayerNorm.bias",
             "bert.encoder.layer.0.attention.self.key.weight", "bert.encoder.layer.0.output.LayerNorm.weight",
             "bert.encoder.layer.1.intermediate.dense.weight", "bert.encoder.layer.1.output.dense.bias",
             "bert.pooler.dense.weight", "cls.seq_relationship.weight", "cls.predictions.transform.dense.bias"]
    tensors = [torch.nn.Parameter(torch.randn(4)) for _ in names]
    optimizer = torch.optim.AdamW([
        {"params": [tensor], "lr": rate * layer_decay ** depth_below_head(name, num_layers),
         "weight_decay": 0.0 if name.endswith("bias") or "LayerNorm" in name else decay}
        for name, tensor in zip(names, tensors)])
    result = {"num_layers": num_layers, "layer_decay": layer_decay, "lr": rate, "decay": decay, "names": names,
              "begin": [numbers(t) for t in tensors], "gradients": [], "weights": []}
    for _ in range(5):
        for tensor in tensors:
            tensor.grad = torch.randn(4)
        result["gradients"].append([numbers(t.grad) for t in tensors])
        optimizer.step()
        result["weights"].append([numbers(t) for t in tensors])
    return result


def orthogonal(matrix):
    """Five Newton-Schulz iterations, as torch.optim.Muon has them in bfloat16."""
    x = matrix / matrix.norm().clamp(min=1e-7)
    x = x.T if x.shape[0] > x.shape[1] else x
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def muon():
    torch.manual_seed(2)
    lr, momentum, decay = 0.02, 0.95, 0.1
    weights = [torch.randn(shape, dtype=torch.float64) for shape in [(4, 4), (8, 4), (4, 8)]]
    begin = [weight.clone() for weight in weights]
    result = {"lr": lr, "momentum": momentum, "decay": decay, "begin": [numbers(w.flatten()) for w in weights]}
    result.update(gradients=[], weights=[])
    moments = [torch.zeros_like(weight) for weight in weights]
    peers = [torch.nn.Parameter(weight.float()) for weight in weights]
    peer = torch.optim.Muon(peers, lr=lr, weight_decay=decay, momentum=momentum, nesterov=True,
                            adjust_lr_fn="match_rms_adamw")
    for _ in range(3):
        gradients = [torch.randn_like(weight) for weight in weights]
        for weight, gradient, moment, its in zip(weights, gradients, moments, peers):
            moment.lerp_(gradient, 1 - momentum)
            update = orthogonal(gradient.lerp(moment, momentum))
            weight.mul_(1 - lr * decay).sub_(lr * 0.2 * max(weight.shape) ** 0.5 * update)
            its.grad = gradient.float()
        peer.step()
        result["gradients"].append([numbers(g.flatten()) for g in gradients])
        result["weights"].append([numbers(w.flatten()) for w in weights])
    for weight, its, first in zip(weights, peers, begin):  # the peer's iterations are in bfloat16
        assert (weight - its).norm() < 0.05 * (weight - first).norm(), (weight, its)
    return result


def soap_iterate(factor, basis):
    """One power iteration and a QR factorisation; the columns of a basis are eigenvectors."""
    shift = 1e-5 * factor.trace() / len(factor)
    return torch.linalg.qr(factor @ basis + shift * basis)[0]


def soap():
    torch.manual_seed(3)
    lr, beta, decay, epsilon, every, limit = 0.02, 0.9, 0.1, 1e-8, 2, 4
    weights = [torch.randn(shape, dtype=torch.float64) for shape in [(4, 4), (8, 4), (4, 8)]]
    result = {"lr": lr, "beta": beta, "decay": decay, "every": every, "limit": limit,
              "begin": [numbers(w.flatten()) for w in weights], "gradients": [], "weights": []}
    first = [torch.zeros_like(weight) for weight in weights]
    second = [torch.zeros_like(weight) for weight in weights]
    sides = [[torch.zeros(n, n, dtype=torch.float64) for n in weight.shape] for weight in weights]
    bases = [[torch.eye(n, dtype=torch.float64) for n in weight.shape] for weight in weights]
    for step in range(4):
        gradients = [torch.randn_like(weight) for weight in weights]
        for i, (weight, gradient) in enumerate(zip(weights, gradients)):
            for side, size in enumerate(weight.shape):
                if size > limit:
                    continue
                square = gradient @ gradient.T if side == 0 else gradient.T @ gradient
                sides[i][side].lerp_(square, 1 - beta)
                for _ in range(16 if step == 0 else 1 if step % every == 0 else 0):
                    bases[i][side] = soap_iterate(sides[i][side], bases[i][side])
            if step == 0:
                continue
            left, right = bases[i]
            correction = 1 - beta**step
            first[i].lerp_(gradient, 1 - beta)
            second[i].lerp_((left.T @ gradient @ right) ** 2, 1 - beta)
            direction = left.T @ first[i] @ right / correction / ((second[i] / correction).sqrt() + epsilon)
            weight.mul_(1 - lr * decay).sub_(lr * left @ direction @ right.T)
        result["gradients"].append([numbers(g.flatten()) for g in gradients])
        result["weights"].append([numbers(w.flatten()) for w in weights])
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
        "layer_decay": layer_decay(),
        "muon": muon(),
        "soap": soap(),
        "schedules": schedules(),
    }
    GOLDEN.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
