"""PyTorch's products of the same shapes as linear_bench: forward with bias, gradient of the input, of the weight.

    python3 linear_peer.py [TOKENS]
"""
import sys

import torch
import torch.nn.functional as F


def median_ms(work, runs=31):
    for _ in range(5):
        work()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(runs + 1)]
    events[0].record()
    for event in events[1:]:
        work()
        event.record()
    torch.cuda.synchronize()
    return sorted(a.elapsed_time(b) for a, b in zip(events, events[1:]))[runs // 2]


def main():
    T = int(sys.argv[1]) if len(sys.argv) > 1 else 32768
    print(f"PyTorch {torch.__version__}, {torch.cuda.get_device_name()}, {T} tokens")
    for name, D in (("BERT-large", 1024), ("BERT-base", 768)):
        total = 0.0
        flops = 0.0
        for layer, width_in, width_out in (("qkv", D, 3 * D), ("out", D, D), ("mlp1", D, 4 * D), ("mlp2", 4 * D, D)):
            x = torch.randn(T, width_in, device="cuda", dtype=torch.bfloat16)
            w = torch.randn(width_out, width_in, device="cuda", dtype=torch.bfloat16)
            b = torch.randn(width_out, device="cuda", dtype=torch.bfloat16)
            dy = torch.randn(T, width_out, device="cuda", dtype=torch.bfloat16)
            work = 2.0 * T * width_in * width_out
            times = (
                ("forward", median_ms(lambda: F.linear(x, w, b))),
                ("dx", median_ms(lambda: dy @ w)),
                ("dw", median_ms(lambda: dy.t() @ x)),
            )
            print(name, layer, *(f"{kind} {ms:.4f} ms {work / ms * 1e-9:.0f} TFLOP/s" for kind, ms in times), sep="  ")
            total += sum(ms for _, ms in times)
            flops += 3 * work
        print(name, f"a layer {total:.4f} ms {flops / total * 1e-9:.0f} TFLOP/s", sep="  ")


if __name__ == "__main__":
    main()
