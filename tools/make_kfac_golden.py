#!/usr/bin/env python3
"""Writes the K-FAC factors of the tiny BERT of tests/golden/bert.safetensors into tests/golden/kfac.safetensors, for
tests that run without Python: A and B of each linear map of the layers, in float64, by NumPy alone.

Forward and backward are written out here. Their gradients must agree with those that PyTorch left in the first file:
so inputs and errors of the maps, of which the factors are made, are PyTorch's.
"""

import json
import math
import pathlib
import struct

import numpy as np

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden"
HEADS, EPSILON, AGREEMENT = 4, 1e-12, 1e-6


def read_tensors(path):
    data = path.read_bytes()
    (size,) = struct.unpack("<Q", data[:8])
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        kind = {"F32": "<f4", "F64": "<f8", "I32": "<i4", "BF16": "<u2"}[entry["dtype"]]
        values = np.frombuffer(data[begin:end], kind)
        if entry["dtype"] == "BF16":
            values = (values.astype("<u4") << 16).view("<f4")
        tensors[name] = values.reshape(entry["shape"]).astype(np.float64 if values.dtype.kind == "f" else np.int64)
    return tensors


def write_tensors(path, tensors):
    header, offset = {}, 0
    for name, values in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [offset, offset + 4 * values.size]}
        offset += 4 * values.size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text +
                     b"".join(values.astype("<f4").tobytes() for values in tensors.values()))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


ERF = np.vectorize(math.erf)


def gelu(x):
    return x * 0.5 * (1 + ERF(x / math.sqrt(2)))


def gelu_slope(x):
    return 0.5 * (1 + ERF(x / math.sqrt(2))) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


class Norm:
    def __init__(self, weight, bias):
        self.weight, self.bias = weight, bias

    def forward(self, x):
        self.scale = 1 / np.sqrt(x.var(-1, keepdims=True) + EPSILON)
        self.normal = (x - x.mean(-1, keepdims=True)) * self.scale
        return self.normal * self.weight + self.bias

    def backward(self, dy):
        d = dy * self.weight
        return self.scale * (d - d.mean(-1, keepdims=True) - self.normal * (d * self.normal).mean(-1, keepdims=True))


class Linear:
    """Keeps its input rows and the gradients at its output rows."""

    def __init__(self, tensors, name):
        self.name, self.weight, self.bias = name, tensors[f"weight:{name}.weight"], tensors[f"weight:{name}.bias"]

    def forward(self, x):
        self.x = x
        return x @ self.weight.T + self.bias

    def backward(self, dy):
        self.dy = dy
        return dy @ self.weight


class Layer:
    def __init__(self, tensors, index):
        def linear(name):
            return Linear(tensors, f"{prefix}.{name}")

        def norm(name):
            return Norm(tensors[f"weight:{prefix}.{name}.weight"], tensors[f"weight:{prefix}.{name}.bias"])

        prefix = f"bert.encoder.layer.{index}"
        self.qkv = [linear(f"attention.self.{name}") for name in ("query", "key", "value")]
        self.output, self.norm1 = linear("attention.output.dense"), norm("attention.output.LayerNorm")
        self.inner, self.outer = linear("intermediate.dense"), linear("output.dense")
        self.norm2 = norm("output.LayerNorm")
        self.maps = [*self.qkv, self.output, self.inner, self.outer]

    def forward(self, x, sequences, read=None):
        """`read`: the rows that heads read, where the layer is the last."""
        self.read, self.sequences = read, sequences
        self.projected = [linear.forward(x) for linear in self.qkv]
        context, self.weights = np.empty_like(x), []
        for rows in sequences:
            q, k, v = (self.by_head(p[rows]) for p in self.projected)
            self.weights.append(softmax(q @ k.transpose(0, 2, 1) / math.sqrt(q.shape[-1])))
            context[rows] = (self.weights[-1] @ v).transpose(1, 0, 2).reshape(-1, x.shape[1])
        self.num_rows = len(x)
        residual = x
        if read is not None:
            context, residual = context[read], x[read]
        y = self.norm1.forward(self.output.forward(context) + residual)
        self.u = self.inner.forward(y)
        return self.norm2.forward(self.outer.forward(gelu(self.u)) + y)

    @staticmethod
    def by_head(x):
        return x.reshape(len(x), HEADS, -1).transpose(1, 0, 2)

    def backward(self, dy):
        d = self.norm2.backward(dy)
        d = d + self.inner.backward(self.outer.backward(d) * gelu_slope(self.u))
        d = self.norm1.backward(d)
        dcontext, dx = self.output.backward(d), d
        if self.read is not None:
            shape = (self.num_rows, d.shape[1])
            whole, residual = np.zeros(shape), np.zeros(shape)
            np.add.at(whole, self.read, dcontext)
            np.add.at(residual, self.read, d)
            dcontext, dx = whole, residual
        errors = [np.empty_like(p) for p in self.projected]
        for rows, weights in zip(self.sequences, self.weights):
            q, k, v = (self.by_head(p[rows]) for p in self.projected)
            dc = self.by_head(dcontext[rows])
            dv, dweights = weights.transpose(0, 2, 1) @ dc, dc @ v.transpose(0, 2, 1)
            dscores = weights * (dweights - (dweights * weights).sum(-1, keepdims=True)) / math.sqrt(q.shape[-1])
            for error, part in zip(errors, (dscores @ k, dscores.transpose(0, 2, 1) @ q, dv)):
                error[rows] = part.transpose(1, 0, 2).reshape(error[rows].shape)
        return dx + sum(linear.backward(error) for linear, error in zip(self.qkv, errors))


def cross_entropy_gradient(logits, labels):
    """Of the mean."""
    gradient = softmax(logits)
    gradient[np.arange(len(labels)), labels] -= 1
    return gradient / len(labels)


def heads_backward(tensors, y, num_masked):
    """The gradient at the rows that heads read: masked tokens, then the first of each sequence."""
    transform = Linear(tensors, "cls.predictions.transform.dense")
    norm = Norm(*(tensors[f"weight:cls.predictions.transform.LayerNorm.{part}"] for part in ("weight", "bias")))
    u = transform.forward(y[:num_masked])
    words = tensors["weight:bert.embeddings.word_embeddings.weight"]
    logits = norm.forward(gelu(u)) @ words.T + tensors["weight:cls.predictions.bias"]
    dwords = norm.backward(cross_entropy_gradient(logits, tensors["masked_labels"]) @ words)
    pooler, classes = Linear(tensors, "bert.pooler.dense"), Linear(tensors, "cls.seq_relationship")
    pooled = np.tanh(pooler.forward(y[num_masked:]))
    dclasses = classes.backward(cross_entropy_gradient(classes.forward(pooled), tensors["next_sentence_labels"]))
    return np.concatenate([transform.backward(dwords * gelu_slope(u)),
                           pooler.backward(dclasses * (1 - pooled * pooled))])


def main():
    tensors = read_tensors(GOLDEN / "bert.safetensors")
    starts = np.concatenate([[0], np.cumsum(tensors["lengths"])])
    sequences = [slice(*pair) for pair in zip(starts[:-1], starts[1:])]
    table = {part: tensors[f"weight:bert.embeddings.{part}_embeddings.weight"]
             for part in ("word", "position", "token_type")}
    norm = Norm(*(tensors[f"weight:bert.embeddings.LayerNorm.{part}"] for part in ("weight", "bias")))
    x = norm.forward(table["word"][tensors["ids"]] + table["position"][tensors["positions"]] +
                     table["token_type"][tensors["segments"]])
    read = np.concatenate([tensors["masked_rows"], starts[:-1]])
    layers = [Layer(tensors, index) for index in range(2)]
    y = layers[1].forward(layers[0].forward(x, sequences), sequences, read)
    layers[0].backward(layers[1].backward(heads_backward(tensors, y, len(tensors["masked_rows"]))))

    factors = {}
    for layer in layers:
        for linear in layer.maps:
            expected = tensors[f"gradient:{linear.name}.weight"]
            error = np.abs(linear.dy.T @ linear.x - expected).max() / np.abs(expected).max()
            assert error < AGREEMENT, f"{linear.name}: {error} from PyTorch's gradient"
            rows = len(linear.x)
            factors[f"a:{linear.name}.weight"] = linear.x.T @ linear.x / rows
            factors[f"b:{linear.name}.weight"] = rows * linear.dy.T @ linear.dy
    write_tensors(GOLDEN / "kfac.safetensors", factors)
    print(f"{len(factors)} factors")


if __name__ == "__main__":
    main()
