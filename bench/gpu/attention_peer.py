"""PyTorch's variable-length attention on the lengths that attention_bench times.

    python attention_peer.py LENGTHS [HEADS ...]

LENGTHS: a file with one length per line, as attention_bench writes it.
"""

import statistics
import sys

import torch
from torch.nn.attention.varlen import varlen_attn


def milliseconds(run, repeats=20):
    for _ in range(3):
        run()
    times = []
    for _ in range(repeats):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


def main():
    lengths = [int(line) for line in open(sys.argv[1])]
    for heads in [int(h) for h in sys.argv[2:]] or [16]:
        ends = torch.tensor([0] + lengths, device="cuda").cumsum(0, dtype=torch.int32)
        rows = sum(lengths)
        q, k, v = (
            torch.randn(rows, heads, 64, device="cuda", dtype=torch.bfloat16, requires_grad=True)
            for _ in range(3)
        )
        dout = torch.randn(rows, heads, 64, device="cuda", dtype=torch.bfloat16)

        def forward():
            return varlen_attn(q, k, v, ends, ends, max(lengths), max(lengths))

        out = forward()

        def backward():
            torch.autograd.grad(out, (q, k, v), dout, retain_graph=True)

        unit = 2e-9 * sum(n * n for n in lengths) * heads * 64
        with torch.no_grad():
            forward_ms = milliseconds(forward)
        backward_ms = milliseconds(backward)
        print(
            f"PyTorch {torch.__version__} H={heads}: forward {forward_ms:.3f} ms "
            f"({2 * unit / forward_ms:.0f} TFLOP/s), backward {backward_ms:.3f} ms "
            f"({5 * unit / backward_ms:.0f} TFLOP/s)"
        )


main()
