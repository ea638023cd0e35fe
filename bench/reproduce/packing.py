"""Sequence packing: padding, packers, and training on packs."""

import speed
from lab import COLA, SQUAD, WIKIPEDIA, greatest_difference, losses, read_lines
from row import CPU, GPU, Paper, Recorded, Row

H200 = "NVIDIA H200"


def pack(lab, histogram, algorithm, *more):
    return lab.json(lab.plenum, "pack", "--histogram", histogram, "--algorithm", algorithm, "--json", *more)


def padding_of(result, capacity):
    slots = result["sequences"] * capacity
    return {"padding": 1 - result["tokens"] / slots, "limit": slots / result["tokens"]}


def padding(histogram, capacity):
    return lambda lab: padding_of(pack(lab, histogram, "lpfhp", "--max-length", capacity), capacity)


def short_padding(lab):
    figures = {}
    for capacity in (128, 384):
        result = pack(lab, lab.capped_histogram(capacity), "optimal", "--time-limit", 5)
        of_it = padding_of(result, capacity)
        figures |= {f"padding_{capacity}": of_it["padding"], f"limit_{capacity}": of_it["limit"],
                    f"factor_{capacity}": result["sequences"] / result["packs"]}
    return figures


def packer(algorithm, depths):
    def measure(lab):
        figures = {}
        for depth in depths:
            result = pack(lab, WIKIPEDIA, algorithm, *(("--depth", depth) if depth else ()))
            key = f"_{depth}" if depth else ""
            gap = result["packs"] / result["lower_bound"] - 1
            figures |= {f"efficiency{key}": result["efficiency"], f"packs{key}": result["packs"], f"gap{key}": gap,
                        f"ms{key}": 1e3 * result["seconds"], f"factor{key}": result["sequences"] / result["packs"],
                        f"over{key}": result["packs"] - result["lower_bound"]}
        return figures
    return measure


def squad(lab):
    figures = {}
    for algorithm in ("spfhp", "lpfhp", "nnlshp", "optimal"):
        result = pack(lab, SQUAD, algorithm, *(("--depth", 3) if algorithm == "nnlshp" else ()))
        figures[algorithm] = result["efficiency"]
    return figures | {"packs": result["packs"], "over": result["packs"] - result["lower_bound"],
                      "factor": result["sequences"] / result["packs"]}


def equal_curves(lab):
    """On a GPU on random words, so that no text is needed there."""
    data = lab.words() if lab.device == GPU else lab.prose(128)
    curves = []
    for layout in ("padded", "packed", "unpadded"):
        steps, _ = lab.train(f"equal-{layout}", "--data", data, "--model", "bert-mini", "--layout", layout,
                             "--order", "sequences", "--global-batch", 32, "--steps", 20, "--learning-rate", 1e-3,
                             "--seed", 1)
        curves.append(losses(steps))
    return {"difference": greatest_difference(curves), "first": curves[0][0], "last": curves[0][-1]}


def labelled_sentences(lab):
    """Files to fine-tune on: does a sentence of the demo's text have the word "the"?"""
    train, dev = lab.path("train.tsv"), lab.path("dev.tsv")

    def write():
        with open(lab.text(), encoding="utf-8") as file:
            lines = [" ".join(line.split()) for line in file if len(line.split()) > 3]
        for path, part in ((train, lines[:2000]), (dev, lines[2000:2500])):
            with open(path, "w", encoding="utf-8") as file:
                file.write("sentence\tlabel\n")
                for line in part:
                    words = line.lower().split()
                    file.write(f"{line}\t{int('the' in words)}\n")
        lab.commands.append("# train.tsv, dev.tsv: sentences of WORK/text.txt, labelled by whether they have \"the\"")
        return train, dev

    return lab.keep("labelled", write)


def equal_fine_tuning(lab):
    data = lab.prose(128)
    train, dev = labelled_sentences(lab)
    model = lab.path("to-tune")
    lab.keep("to-tune", lambda: lab.train("to-tune", "--data", data, "--model", "bert-tiny", "--steps", 20,
                                          "--global-batch", 64, "--seed", 1))
    curves, scores = [], []
    for layout in ("padded", "packed", "unpadded"):
        run = lab.path(f"tuned-{layout}")
        lab.run(lab.plenum, "finetune", "--model", model, "--task", "classification", "--train", train, "--dev", dev,
                "--run", run, "--layout", layout, "--epochs", 2, "--learning-rate", 1e-3, "--seed", 1, "--device", "cpu",
                "--quiet", "--json")
        curves.append(losses(read_lines(run + "/metrics.jsonl")))
        scores.append(read_lines(run + "/evaluations.jsonl")[-1]["accuracy"])
    apart = max(abs(a - b) for curve in curves[1:] for a, b in zip(curve, curves[0], strict=True))
    return {"difference": apart, "steps": len(curves[0]), "first": curves[0][0], "last": curves[0][-1], "padded": scores[0],
            "packed": scores[1], "unpadded": scores[2]}


def leaks(lab):
    figures = {}
    for form in ("isolated", "no-mask", "no-reset", "neither"):
        line = lab.json_lines(lab.bench("leaks"), "--data", lab.prose(128), "--form", form, "--steps", 1600,
                              "--evaluations", 1)[-1]
        key = form.replace("-", "_")
        figures[key], figures[f"{key}_accuracy"] = line["held_out_loss"], line["accuracy"]
    return figures


def corrections(lab):
    data = lab.prose(128)
    sequences, steps, beta1, beta2 = 32, 300, 0.9, 0.999

    def run(name, layout, batch, num_steps, exponent=1.0):
        return lab.train(name, "--data", data, "--model", "bert-tiny", "--layout", layout, "--order", "sequences",
                         "--global-batch", batch, "--steps", num_steps, "--optimizer", "lamb", "--learning-rate", 6e-3,
                         "--warmup", "0.1dur", "--beta1", beta1 ** exponent, "--beta2", beta2 ** exponent,
                         "--eval-every", 1000, "--eval-sequences", 0, "--seed", 1)

    padded, padded_end = run("hyper-padded", "padded", sequences, steps)
    packed, packed_end = run("hyper-packed", "packed", sequences, steps)
    slots = sum(step["real_tokens"] + step["padded_tokens"] for step in packed) / len(packed)
    factor = sequences * 128 / slots
    larger, fewer = round(sequences * factor), round(steps / factor)
    _, naive = run("hyper-packs", "packed", larger, fewer)
    _, raised = run("hyper-betas", "packed", larger, fewer, factor)
    return {"difference": greatest_difference([losses(padded), losses(packed)]),
            "padded": padded_end["losses"]["held_out"], "packed": packed_end["losses"]["held_out"], "factor": factor,
            "sequences": sequences, "larger": larger, "steps": steps, "fewer": fewer,
            "naive": naive["losses"]["held_out"], "raised": raised["losses"]["held_out"]}


def phases(lab):
    text, work = lab.text(), lab.path("phases")
    lab.run("env", f"PLENUM={lab.plenum}", f"TEXT={text}", f"WORK={work}", "MODEL=bert-tiny",
            "VOCABULARY=8000", "STEPS_128=900", "STEPS_512=100", "DOCUMENTS=blank-line", "recipes/two-phases.sh",
            "--global-batch", "4096tok", "--quiet", "--seed", 1)
    before = lab.json(lab.plenum, "eval", f"{work}/phase-1", "--data", f"{work}/data-512", "--json")
    after = lab.json(lab.plenum, "eval", f"{work}/phase-2", "--json")
    long = lab.train("phases-long", "--data", f"{work}/data-512", "--model", "bert-tiny", "--global-batch", "4096tok",
                     "--steps", 1000, "--seed", 1)
    rates = [speed.tokens_per_second(read_lines(f"{work}/phase-{n}/metrics.jsonl"), 3) for n in (1, 2)]
    return {"before": before["mlm_loss"], "after": after["mlm_loss"], "long": long[1]["losses"]["held_out"],
            "rate_128": rates[0], "rate_512": rates[1]}


PADDING = (
    Row("padding-wikipedia", "Half of a padded batch of Wikipedia at 512 is padding", "50.0 %, 2.001x to gain",
        "The same histogram.", padding(WIKIPEDIA, 512), "counted: {padding:.2%} padding, {limit:.4f}x to gain"),
    Row("padding-short", "At 128 and 384 there is less padding", "about 1.2x and 1.7x to gain; packs 1.17x and 1.70x "
        "as full (table 2)", "These histograms are not published. Here Wikipedia's lengths at 512, longer ones counted "
        "as 128 or 384; packs of any number of sequences, the fewest there can be.", short_padding,
        "counted: {limit_128:.2f}x and {limit_384:.2f}x to gain, packs {factor_128:.2f}x and {factor_384:.2f}x as full; "
        "{padding_128:.1%} and {padding_384:.1%} padding"),
    Row("padding-cola", "GLUE has more: up to 89 % with CoLA at 128", "89 %",
        "The 8,551 training sentences by bert-base-uncased's vocabulary, 11.3 tokens each. Which of CoLA's sentences the "
        "paper counts is not known to us.", padding(COLA, 128),
        "counted: {padding:.1%}"),
    Row("padding-squad", "SQuAD 1.1 at 384", "2.2x to gain", "The published histogram.", padding(SQUAD, 384),
        "counted: {padding:.1%} padding, {limit:.2f}x to gain"),
    Row("padding-others", "Other GLUE tasks, LibriSpeech (1.6x to gain), QM9 (1.6x)", "see the paper", "",
        not_run="their lengths are not published and the data is not here; `plenum prepare` and `plenum inspect` say "
        "the share for any text. Speech and molecules are no text."),
)

PACKERS = (
    Row("packing-spfhp", "SPFHP packs Wikipedia in 0.03 s", "89.4 % full at depth 3, 98.9 % at 8, 99.6 % at any depth; "
        "0.02 to 0.03 s", "The same packs; compiled code.", packer("spfhp", (3, 8, None)),
        "{efficiency_3:.1%} at depth 3, {efficiency_8:.1%} at 8, {efficiency:.1%} at any; {ms:.2f} ms"),
    Row("packing-lpfhp", "LPFHP is fuller", "99.81 % at depth 12, 0.048 s", "The same packs; compiled code.",
        packer("lpfhp", (3, 12, None)),
        "{efficiency_12:.2%} at depth 12 in {ms_12:.2f} ms; {efficiency_3:.1%} at 3, {efficiency:.2%} at any"),
    Row("packing-nnlshp", "NNLSHP is nearly perfect with 3 sequences to a pack", "99.7 % in 28.4 s; 24.3 s by its README; "
        "8,155,059 packs", "The same method, compiled, with a solver of our own; rounding differs by two packs.",
        packer("nnlshp", (3,)),
        "{efficiency_3:.2%} in {ms_3:.0f} ms, {packs_3:,} packs"),
    Row("packing-optimal", "How far from the best that is", "no bound given", "Column generation with a proven bound.",
        packer("optimal", (3, None)),
        "depth 3: {packs_3:,} packs, {over_3:,} over the bound, {efficiency_3:.2%} full, {ms_3:.0f} ms; any depth: "
        "{packs:,} packs, {over:,} over, {efficiency:.3%}, {ms:.0f} ms"),
    Row("packing-squad", "SQuAD packs as well", "2.2x to gain", "Its lengths do not fill 384 as well as Wikipedia's fill "
        "512: no packer can do better than 98.8 %.", squad,
        "SPFHP {spfhp:.1%}, LPFHP {lpfhp:.1%}, NNLSHP {nnlshp:.1%}, optimal {optimal:.1%} full, {over} over the bound: "
        "{factor:.2f}x"),
)

TRAINING = (
    Row("packing-speed", "Packing trains phase 2 (512) twice as fast", "1.91x of 2.00x on IPUs; above 2x with transfers",
        "Plenum's padded batches cost less than the paper's: rows of padding have neither attention nor heads, which are "
        "a large part of small models. Packs have no overhead, as attention is per sequence.",
        speed.against_padded("packed", 512, "bert-large", 60),
        "{model}: {packed:,.0f} tokens/s, padded {padded:,.0f}: {ratio:.2f}x", (CPU, GPU), recorded=(
            Recorded("BERT-large: 287,126 tokens/s, padded 156,771: 1.83x", H200, "2026-11-15", "h200-202611.md",
                     "Training", ("287,126", "156,771")),)),
    Row("packing-speed-384", "Packing at 384", "1.68x (table 2)", "As above, with Wikipedia's lengths cut to 384.",
        speed.against_padded("packed", 384, "bert-base", 40),
        "{model}: {packed:,.0f} tokens/s, padded {padded:,.0f}: {ratio:.2f}x", (CPU, GPU)),
    Row("packing-speed-128", "Packing at 128", "1.15x (table 2)", "As above, with Wikipedia's lengths cut to 128.",
        speed.against_padded("packed", 128, "bert-base", 40),
        "{model}: {packed:,.0f} tokens/s, padded {padded:,.0f}: {ratio:.2f}x", (CPU, GPU)),
    Row("packing-equal", "Packing changes no loss in pre-training", "the same curves, but for the batch's size",
        "The same sequences, masks and dropout in each layout; what differs is rounding.", equal_curves,
        "BERT-mini, 20 steps from {first:.2f} to {last:.2f}, dropout 0.1: padded, packed and unpadded losses differ by "
        "{difference:.1e} at most", (CPU, GPU)),
    Row("packing-equal-tuning", "Packing changes no loss in fine-tuning", "the same scores",
        "As above. The task is made: does a sentence have the word \"the\"?", equal_fine_tuning,
        "BERT-tiny, {steps} steps, losses from {first:.2f} to {last:.3f}: they differ by {difference:.1e} at most; "
        "accuracy {padded:.4f} padded, "
        "{packed:.4f} packed, {unpadded:.4f} unpadded"),
    Row("packing-leaks", "Without mask and positions of its own, a packed sequence suffers",
        "without a mask loss and accuracy get worse and never recover; without positions 71.8 % of 72.1 % accuracy",
        "A tiny model, 1,600 steps, one seed, sequences that begin at random; held-out sequences each by itself.", leaks,
        "held-out loss and accuracy: isolated {isolated:.3f}, {isolated_accuracy:.2%}; no mask {no_mask:.3f}, "
        "{no_mask_accuracy:.2%}; no own positions {no_reset:.3f}, {no_reset_accuracy:.2%}; neither {neither:.3f}, "
        "{neither_accuracy:.2%}"),
    Row("packing-corrections", "Packing needs its hyper-parameters corrected: accumulation divided by the packing factor, "
        "or LAMB's betas to its power", "0.81 becomes 0.66 for a batch of 1,500",
        "Plenum counts a batch in sequences, so a packed step trains on what a padded one does. A batch counted in packs "
        "is larger, takes fewer steps, and ends elsewhere.", corrections,
        "LAMB, {steps} steps of {sequences} sequences: losses differ by {difference:.1e} at most, held-out {padded:.3f} "
        "padded, {packed:.3f} packed, nothing adjusted. As many packs ({larger} sequences, {fewer} steps): {naive:.3f}; "
        "with betas to the power {factor:.2f}: {raised:.3f}"),
    Row("two-phases", "Phase 1 at 128, then phase 2 at 512", "BERT's recipe: 90 % of the steps at 128",
        "A tiny model on a dictionary; one recipe, `recipes/two-phases.sh`.", phases,
        "BERT-tiny, 900 and 100 steps of 4,096 tokens: held-out loss at 512 {before:.3f} behind phase 1, {after:.3f} behind "
        "phase 2; 1,000 steps at 512 alone {long:.3f}. {rate_128:,.0f} and {rate_512:,.0f} tokens/s"),
    Row("packing-scale", "Without padding, load differs between accelerators; packing scales",
        "un-padding's speed-up falls to 50 % on 32 accelerators and 30 % on 2,048",
        "Their ranks take sequences as they come. Divided evenly, un-padding keeps its gain where a rank has a few "
        "dozen sequences.", recorded=(
            Recorded("simulated, how much longer a token takes than on one rank, 32 sequences a rank: 32 ranks, as they "
                     "come +27.5 %, divided evenly +0.0 %, packed +1.5 %; 2,048 ranks +45.7 %, +0.0 %, +2.3 %; 4 "
                     "sequences a rank, 2,048 ranks +105.1 %, +4.0 %, +2.6 %", "AMD EPYC, 2 cores", "2026-11-19",
                     "study-epyc-2-202611.md", "Unpadded and packed on many ranks, from the model alone",
                     ("| 32 | 32 | +27.5 % | +0.0 % | +1.5 % |", "| 32 | 2048 | +45.7 % | +0.0 % | +2.3 % |",
                      "| 4 | 2048 | +105.1 % | +4.0 % | +2.6 % |")),)),
    Row("packing-squad-f1", "SQuAD after packed pre-training is as good", "F1 88.32 (88.5) base, 90.65 (90.9) large", "",
        not_run="needs BERT pre-trained in full on Wikipedia and books, hundreds of GPU hours."),
    Row("packing-nsp", "Next-sentence prediction must stay: without it SQuAD loses 1.31 % F1", "-1.31 % F1, -1.15 % EM",
        "", not_run="as above. Plenum trains with or without it (`prepare --objective mlm+nsp`)."),
)

PAPER = Paper("Sequence packing (Krell et al., arXiv 2107.02027)",
              "Graphcore's published code, histograms and README; tables of the paper at second hand, from public notes "
              "on its second version.", PADDING + PACKERS + TRAINING)
