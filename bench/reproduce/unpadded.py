"""Unpadded BERT: claims of the abstract, and figures of the authors' MLPerf submission and its pull requests."""

import re

import speed
from lab import WIKIPEDIA, greatest_difference, losses, read_json
from row import CPU, GPU, Paper, Recorded, Row

H200 = "NVIDIA H200"
EPYC = "AMD EPYC, 2 cores"


def grouped_attention(lab):
    output = lab.run(lab.bench("gpu_attention_bench"), WIKIPEDIA)

    def times(name):
        line = next(line for line in output.splitlines() if line.startswith(name) and "under load" not in line)
        return [float(ms) for ms in re.findall(r"(?:forward|backward|both) ([0-9.]+)", line)]

    one, groups = times("histogram, H=16"), times("same, four streams")
    return {"one_forward": one[0], "one_backward": one[1], "one": one[2], "groups_forward": groups[0],
            "groups_backward": groups[1], "groups": groups[2], "slower": groups[2] / one[2] - 1}


def exchange_load(lab):
    lines = lab.json_lines(lab.bench("exchange"), "--histogram", WIKIPEDIA)
    figures = {}
    for name, line in zip("abcd", lines, strict=True):
        figures[f"ranks_{name}"], figures[f"sequences_{name}"] = line["ranks"], line["sequences"]
        for way in ("as_they_come", "dealt_in_turn", "dealt_in_snakes", "divided"):
            figures[f"{way}_{name}"] = line[way]["operations"] - 1
    return figures


def exchange_time(lab):
    line = lab.json(lab.bench("exchange"), "--histogram", WIKIPEDIA, "--ranks", 2, "--sequences", 8, "--steps", 24)
    off, on = sum(line["off_seconds"]), sum(line["on_seconds"])
    return {"off_ms": 1e3 * off / 24, "on_ms": 1e3 * on / 24, "saved": 1 - on / off,
            "predicted": 1 - line["on_load"] / line["off_load"]}


def overlap(lab):
    on_gpu = lab.device == GPU
    model, ranks, batch = ("bert-base", 1, "32768tok") if on_gpu else ("bert-mini", 2, "8192tok")
    run = lab.path("overlap")
    lab.json(lab.plenum, "train", "--run", run, "--data", lab.words(), "--model", model, "--ranks", ranks, "--device",
             "cuda" if on_gpu else "cpu", "--global-batch", batch, "--steps", 24, "--eval-every", 1000, "--json")
    step = read_json(run + "/step.json")
    waited, seconds = step["waited_seconds"], step["measured"]["step_seconds"]
    return {"model": model.replace("bert", "BERT"), "ranks": ranks, "waited": 1e3 * waited, "step": 1e3 * seconds,
            "share": waited / seconds}


def fused_gelu(lab):
    output = lab.run(lab.bench("gpu_linear"))
    rows = re.findall(r"^\| (forward|gradient) \S+ x \S+ x (\d+) \| ([0-9.]+) \| ([0-9.]+) \|", output, re.M)
    found = {(way, int(width)): (float(apart), float(fused)) for way, width, apart, fused in rows}
    figures = {}
    for name, width in (("large", 1024), ("base", 768)):
        for way in ("forward", "gradient"):
            figures[f"{name}_{way}_apart"], figures[f"{name}_{way}_fused"] = found[way, width]
    return figures


def passes(lab):
    output = lab.run(lab.bench("gpu_elementwise"))
    lines = re.findall(r"^(.*?\S) +([0-9.]+) +([0-9.]+) +([0-9.]+)%$", output, re.M)
    found = {}
    for name, microseconds, _, of_copy in lines:
        found.setdefault(name.strip(), (float(microseconds), float(of_copy)))  # rows of 1024 come first
    figures = {}
    for key, name in (("norm", "layer norm backward"), ("residual", "layer norm forward, dropout"),
                      ("embedding", "embedding forward, dropout")):
        figures[key], figures[f"{key}_of_copy"] = found[name]
    return figures


def lamb(lab):
    output = lab.run(lab.bench("gpu_optimizer"))
    found = re.search(r"^LAMB +([0-9.]+) +([0-9.]+) +([0-9.]+)%", output, re.M)
    norm = re.search(r"^squares, decide step +([0-9.]+)", output, re.M)
    return {"ms": float(found[1]), "of_copy": float(found[3]), "norm_ms": float(norm[1])}


def graphs(lab):
    def step(*more):
        return speed.gpu_bench(lab, "bert-base", "unpadded", 60, *more)["ms_per_step"]

    plain, recorded = step("--plain"), step()
    return {"plain": plain, "recorded": recorded, "saved": 1 - recorded / plain}


def mlperf_rate(lab):
    result = speed.gpu_bench(lab, "bert-large", "unpadded", 60)
    return {"tokens": result["tokens_per_second"], "sequences": result["tokens_per_second"] / speed.MEAN_LENGTH}


def clipping(lab):
    curves, norms = [], []
    for ranks in (1, 2, 4):
        steps, _ = lab.train(f"clip-{ranks}", "--data", lab.prose(128), "--model", "bert-tiny", "--steps", 30,
                             "--global-batch", 32, "--order", "sequences", "--clip-norm", 0.5, "--ranks", ranks,
                             "--threads", 4, "--seed", 1)
        curves.append(losses(steps))
        norms += [step["gradient_norm"] for step in steps]
    before = {}
    for ranks in (1, 2, 8):
        before[ranks] = lab.json(lab.bench("clipping"), "--data", lab.prose(128), "--clip", "before", "--ranks", ranks,
                                 "--steps", 300)
    return {"difference": greatest_difference(curves), "clipped": sum(norm > 0.5 for norm in norms) / len(norms),
            "before": greatest_difference([run["losses"] for run in before.values()]),
            "held_out": ", ".join(f"{run['held_out_loss']:.3f}" for run in before.values()),
            "clipped_before": ", ".join(f"{run['clipped']:.0%}" for run in before.values())}


def ablation(lab):
    """A layer with one optimisation after another."""
    size = ("bert-large", 32768, "cuda", 8) if lab.device == GPU else ("bert-base", 2048, "cpu", 1)
    model, tokens, device, repeats = size
    result = lab.json(lab.bench("ablation"), "--lengths", WIKIPEDIA, "--model", model, "--tokens", tokens, "--device",
                      device, "--repeats", repeats)
    times = [form["ms"] for form in result["forms"]]
    return {"model": model.replace("bert", "BERT"), "tokens": result["tokens"],
            "forms": "; ".join(f"{form['form']} {form['ms']:,.2f}" if device == "cuda" else
                               f"{form['form']} {form['ms']:,.0f}" for form in result["forms"]),
            "all": times[0] / times[-1], "rest": times[1] / times[-1]}


ROWS = (
    Row("unpadded-throughput", "Computing on real tokens alone is faster than padding",
        "2.00x at most, by Wikipedia's lengths; the paper's own ratio was not seen",
        "Rows of padding cost products and passes of the layers, but neither attention nor heads, so there is less than "
        "2.00x to gain; least with small models, in which heads are a large part.",
        speed.unpadded_against_padded, "{model}: {unpadded:,.0f} tokens/s, padded {padded:,.0f}: {ratio:.2f}x",
        (CPU, GPU), recorded=(
            Recorded("BERT-large: 287,260 tokens/s, padded 156,771: 1.83x", H200, "2026-11-15", "h200-202611.md",
                     "Training", ("287,260", "156,771")),
            Recorded("BERT-base: 894,317 tokens/s, padded 488,992: 1.83x", H200, "2026-11-15", "h200-202611.md",
                     "Training", ("894,317", "488,992")))),
    Row("grouped-attention", "Sequences in groups of like length, each group's attention on a stream of its own, are "
        "faster than one launch", "faster; no figure seen",
        "The paper's kernels take the tile of the longest sequence of a launch, so groups spare work. Ours takes each "
        "sequence as long as it is; groups only add launches.", grouped_attention,
        "one launch {one:.3f} ms, four groups on four streams {groups:.3f} ms ({slower:+.0%}), forward and backward of "
        "one layer", (GPU,), recorded=(
            Recorded("one launch 0.460 ms, four groups on four streams 0.485 ms (+5 %), forward and backward of one "
                     "layer", H200, "2026-11-15", "h200-202611.md", "Attention", ("0.460", "0.485")),)),
    Row("exchange-load", "Exchanging sequences between ranks evens out their load",
        "sorted by length and dealt in turn; no figure seen",
        "Plenum divides by the predicted operations of a sequence, attention included, not by length. In the "
        "submission 8 ranks had 56 sequences each.", exchange_load,
        "counted, busiest rank over the mean, {ranks_a} ranks of {sequences_a} sequences: as they come "
        "{as_they_come_a:+.1%}, dealt in turn {dealt_in_turn_a:+.2%}, Plenum {divided_a:+.3%}; {ranks_c} of "
        "{sequences_c}: {as_they_come_c:+.1%}, {dealt_in_turn_c:+.2%}, {divided_c:+.3%}; {ranks_d} of {sequences_d}: "
        "{as_they_come_d:+.0%}, {dealt_in_turn_d:+.0%}, {divided_d:+.1%}"),
    Row("exchange-time", "With the exchange a step is faster", "faster; no figure seen",
        "Two ranks differ less than the paper's eight. On one machine nothing travels: every rank reads the sequences "
        "that fall to it.", exchange_time,
        "BERT-mini, 2 ranks of 8 sequences: {off_ms:.0f} ms a step as they come, {on_ms:.0f} ms divided evenly: "
        "{saved:.1%} less, {predicted:.1%} by operations",
        missing="the exchange between several GPUs."),
    Row("exchange-overlap", "The exchange overlaps with training", "\"highly\"; no figure seen",
        "Dividing, reading, masking and laying out the next step's sequences runs on threads beside the step; nothing is "
        "exchanged on one machine.", overlap,
        "{model}, ranks: {ranks}; of a step of {step:.1f} ms, {waited:.2f} ms are spent waiting for its data",
        (CPU, GPU), missing="processes that read shards of their own and send sequences (`--data-sharding local`)."),
    Row("gelu-fusion", "Fusing operators into products makes them faster",
        "no figure seen; the v2.0 submission has bias fused into products and GELU apart, v2.1 GELU fused too",
        "Products of the library with a pass for GELU, against our own kernels with GELU inside.", fused_gelu,
        "GELU apart and fused, ms: BERT-large forward {large_forward_apart:.3f}, {large_forward_fused:.3f}, gradient "
        "{large_gradient_apart:.3f}, {large_gradient_fused:.3f}; BERT-base {base_forward_apart:.3f}, "
        "{base_forward_fused:.3f} and {base_gradient_apart:.3f}, {base_gradient_fused:.3f}", (GPU,), recorded=(
            Recorded("GELU apart and fused, ms: BERT-large forward 0.523, 0.447, gradient 0.577, 0.422; BERT-base 0.318, "
                     "0.272 and 0.374, 0.246", H200, "2026-11-15", "h200-202611.md", "GEMMs",
                     ("0.523 and 0.447", "0.577 and 0.422", "0.318 and 0.272", "0.374 and 0.246")),)),
    Row("fused-passes", "Dropout, residual and LayerNorm are one pass; its backward is faster",
        "LayerNorm backward 117 µs, apex 119 µs, 28,672 rows of 1,024 on an A100 (Paddle PR 39247)",
        "An H200 has more than twice the memory bandwidth of an A100, and there are 14 % more rows.", passes,
        "32,768 rows of 1,024: LayerNorm backward {norm:.0f} µs ({norm_of_copy:.0f} % of a copy's rate), forward with "
        "dropout and residual {residual:.0f} µs, embedding forward {embedding:.0f} µs", (GPU,), recorded=(
            Recorded("32,768 rows of 1,024: LayerNorm backward 71.8 µs (68 % of a copy's rate; 90 % in a later build, in "
                     "a step), forward with dropout and residual 69.7 µs, embedding forward 64.9 µs", H200,
                     "2026-11-15", "h200-202611.md", "Passes over memory", ("71.8", "68 %", "69.7", "64.9", "90 %")),)),
    Row("lamb", "LAMB in few launches over one flat buffer", "1.65 ms, NVIDIA's 2.34 ms, on 8 A100s that divide the "
        "state (Paddle PR 39972)",
        "One GPU updates all 336 million parameters here; each of the eight updates an eighth.", lamb,
        "{ms:.2f} ms for BERT-large ({of_copy:.0f} % of a copy's rate), {norm_ms:.2f} ms for the norm", (GPU,), recorded=(
            Recorded("3.26 ms for BERT-large (103 % of a copy's rate), 0.30 ms for the norm", H200, "2026-11-15",
                     "h200-202611.md", "Passes over memory", ("3.263", "103 %", "0.302")),)),
    Row("cuda-graphs", "Steps recorded as CUDA graphs spare launches", "no figure seen; the v2.0 submission allows "
        "recording and does not record", "Shapes change from step to step; Plenum rounds them up, so that few occur.",
        graphs, "BERT-base: {plain:.2f} ms a step launched one by one, {recorded:.2f} ms recorded: {saved:.1%} less",
        (GPU,)),
    Row("ablation", "Each optimisation adds to the speed: a cumulative ablation", "the paper's table was not seen",
        "A layer, put together of the same ops in bench/ablation.cpp: Plenum has no switches for slow forms of a step. "
        "On a CPU removing the padding is all that is gained; the rest is noise. Padded, attention computes padding, too.",
        ablation,
        "a layer of {model}, forward and backward, {tokens:,} tokens, ms, each with all before it: {forms}. In all "
        "{all:.2f}x, without padding {rest:.2f}x", (CPU, GPU),
        recorded=(Recorded("steps of BERT-large with 32,768 tokens, ms, before and after, in different builds: gradients "
                           "overwritten, not zeroed and added 126.68, 126.09; attention with fewer instructions 111.58, "
                           "111.36; last layer only for rows that heads read 117.2, 114.3; tensors aligned 116.26, "
                           "114.07", H200, "2026-11", "h200-202611.md", "Changes, predicted and measured",
                           ("126.68 to 126.09", "111.36 and 111.23 for 111.58", "114.3 and 114.7 for 117.2",
                            "116.26 (one run of 60 steps) to 114.07")),),
        missing="grouping, exchange and CUDA graphs, which have rows of their own."),
    Row("clipping", "Clip before the gradients of ranks are summed, or after",
        "before (the submission)",
        "Clipped before, a step depends on the number of ranks. Plenum clips the norm of the summed gradient; the other "
        "way is made in bench/clipping.cpp, BERT-tiny with AdamW.", clipping,
        "clipped after the sum, losses on 1, 2 and 4 ranks differ by {difference:.1e} at most over 30 steps, "
        "{clipped:.0%} of them clipped. Clipped before, on 1, 2 and 8 ranks, they differ by {before:.1%} at most over "
        "300 steps, with {clipped_before} of the gradients clipped; held-out loss {held_out}"),
    Row("mlperf-rate", "BERT-large, Wikipedia at 512, sequences a second and GPU",
        "307 on 8 A100s; NVIDIA 997 on 8 H200s, FP8 and packed (MLPerf v2.0 and v4.0 logs)",
        "One GPU in bf16, so no communication; AdamW in place of LAMB, and no evaluations.", mlperf_rate,
        "{sequences:,.0f} ({tokens:,.0f} tokens/s, {0} tokens a sequence)".replace("{0}", "255.8"), (GPU,), recorded=(
            Recorded("1,127 (288,355 tokens/s, 255.8 tokens a sequence)", H200, "2026-11-16", "h200-202611.md",
                     "Training", ("288,355",)),)),
    Row("mlperf-target", "MLPerf's target: 72.0 % masked-token accuracy in 16.6 minutes on 8 A100s",
        "16.6 min (MLPerf v2.0 logs)", "", not_run="needs 8 GPUs, MLPerf's Wikipedia of 2020-01-01 (365 GB) and its "
        "checkpoint after phase 1."),
)

PAPER = Paper("Unpadded BERT (arXiv 2208.08124)",
              "the abstract, the authors' MLPerf submissions v2.0 and v2.1 with their logs, and Paddle's pull requests. "
              "The tables of the paper itself were not available to us.", ROWS)
