"""PipeFisher: K-FAC in the bubbles of pipelines."""

import json
import re
import statistics

from lab import Failure, table_rows
from row import CPU, GPU, Paper, Recorded, Row

H200 = "NVIDIA H200"
EPYC = "AMD EPYC, 2 cores"
SCHEDULES = ("gpipe", "1f1b", "chimera")


def simulate(lab, model, schedule, stages, layers, *more):
    return lab.json(lab.plenum, "simulate", "--schedule", schedule, "--stages", stages, "--micro-batches", stages,
                    "--profile", f"recipes/profiles/{model}-p100.csv", "--layers-per-stage", layers, "--fill", "kfac",
                    "--json", *more)


def utilisation(model, stages, layers):
    def measure(lab):
        figures = {}
        for name in SCHEDULES:
            result = simulate(lab, model, name, stages, layers)
            if result["violations"]:
                raise ValueError(f"{name}: the schedule is wrong: {result['first_violation']}")
            key = name.replace("1f1b", "one_f")
            figures |= {f"{key}_idle": result["unfilled_utilization"], f"{key}_filled": result["utilization"],
                        f"{key}_every": result["refresh_steps"],
                        f"{key}_longer": result["preconditioning_percent"] / 100}
        return figures
    return measure


def grid(lab):
    output = lab.run("python3", "bench/fill_grid.py", "--plenum", lab.plenum)
    rows = table_rows(output, "| model")
    apart = [(abs(float(every) / float(formula) - 1), recompute == "yes")
             for *_, recompute, _, formula, every, _, _, _, _, _ in (row[3:] for row in rows)]
    plain = [difference for difference, recomputes in apart if not recomputes]
    every = [float(row[6]) for row in rows]
    longer = {batch: [float(row[8].removesuffix(" %")) for row in rows if row[2] == batch] for batch in ("8", "32")}
    kept = [float(row[11].removesuffix(" GB")) / float(row[10].removesuffix(" GB")) for row in rows]
    return {"rows": len(rows), "plain": len(plain), "most": max(plain), "recomputed": max(d for d, r in apart if r),
            "least_every": min(every), "most_every": max(every), "median_every": statistics.median(every),
            "short_8": min(longer["8"]), "long_8": max(longer["8"]), "short_32": min(longer["32"]),
            "long_32": max(longer["32"]), "kept": statistics.median(kept)}


def measured_steps(lab):
    """Of 1F1B by bench/pipeline_steps.py: ms and utilisation by optimizer."""
    on_gpu = lab.device == GPU
    shape = (("--model", "bert-base", "--pp", 4, "--engines", "gpu", "--steps", 44, "--drawn", 16, "--global-batch",
              "65536tok") if on_gpu else
             ("--model", "bert-mini", "--pp", 2, "--engines", "threads", "--steps", 40, "--drawn", 16, "--global-batch",
              "4096tok"))
    output = lab.run("python3", "bench/pipeline_steps.py", "--plenum", lab.plenum, "--data", lab.words(), "--schedules",
                     "1f1b", "--micro-batches", 8, *shape)
    rows = {row[2]: row for row in table_rows(output, "| engine")}
    figures = {"model": "BERT-base, 4 parts of the GPU" if on_gpu else "BERT-mini, 2 ranks of one core"}
    for name in ("lamb", "kfac", "kfac-outside"):
        row = rows.get(name, ["", "", name, "is missing"])
        if len(row) < 12:
            raise Failure(f"{name}: {row[3]}")
        key = name.replace("-", "_")
        figures |= {key: float(row[6].split()[0].replace(",", "")), f"{key}_busy": row[10], f"{key}_error": row[11]}
    figures["every"] = rows["kfac"][3]
    figures["longer"] = figures["kfac"] / figures["lamb"] - 1
    figures["longer_outside"] = figures["kfac_outside"] / figures["lamb"] - 1
    return figures


STEPS = 400
RATES = [6e-3, 1.2e-2, 2.4e-2]
GRID = {"lamb": {"fixed": {"optimizer": "lamb", "warmup": "0.1dur"}, "grid": {"learning-rate": RATES}},
        "kfac": {"fixed": {"optimizer": "kfac", "kfac-every": 4, "warmup": "0.1dur"}, "grid": {"learning-rate": RATES}}}


def time_to_loss(lab):
    """Steps that K-FAC needs for LAMB's last loss, each at its best of three learning rates, and the simulated time:
    by as much as a filled step of the published profile is longer."""
    out, grid = lab.path("convergence"), lab.path("grid.json")
    with open(grid, "w", encoding="ascii") as file:
        json.dump(GRID, file)
    lab.commands.append(f"# grid.json: {json.dumps(GRID)}")
    lab.run("python3", "bench/convergence.py", "--plenum", lab.plenum, "--data", lab.prose(128), "--out", out, "--model",
            "bert-tiny", "--steps", STEPS, "--global-batch", "4096tok", "--seeds", 1, "--grid", grid, "--optimizers",
            "lamb,kfac")
    with open(f"{out}/table.md", encoding="utf-8") as file:
        rows = {row[0].partition(":")[0]: row for row in table_rows(file.read(), "| optimizer")}
    reached = re.match(r"[0-9]+", rows["kfac"][-4])
    if not reached:
        raise Failure(f"K-FAC reaches LAMB's loss {rows['kfac'][-4]}")
    filled = simulate(lab, "bert-base", "1f1b", 4, 3)
    share = int(reached[0]) / STEPS
    return {"steps": int(reached[0]), "of": STEPS, "share": share, "lamb": float(rows["lamb"][6]),
            "kfac": float(rows["kfac"][6]), "time": share * filled["step_ms"] / filled["unfilled_step_ms"]}


ROWS = (
    Row("bubbles-base", "Pipelines are idle for much of a step, and K-FAC fills it: BERT-Base, 4 stages",
        "the released scheduler on the released times, run by us: GPipe and 1F1B 57.1 to 88.7 %, Chimera 76.1 to 94.1 %",
        "The same profile (P100, micro-batch 32). Plenum cuts work into smaller pieces, and counts preconditioning as "
        "work; the released scheduler leaves 5 % margins.", utilisation("bert-base", 4, 3),
        "simulated, before and after: GPipe {gpipe_idle:.1%}, {gpipe_filled:.1%}; 1F1B {one_f_idle:.1%}, "
        "{one_f_filled:.1%}; Chimera {chimera_idle:.1%}, {chimera_filled:.1%}. A step gets {one_f_longer:.1%} longer "
        "(1F1B), {chimera_longer:.1%} (Chimera); refreshed every {one_f_every:.1f} and {chimera_every:.1f} steps"),
    Row("bubbles-large", "The same: BERT-Large, 8 stages", "as above: Chimera 68.0 to 91.5 %", "As above.",
        utilisation("bert-large", 8, 3),
        "simulated: GPipe {gpipe_idle:.1%}, {gpipe_filled:.1%}; 1F1B {one_f_idle:.1%}, {one_f_filled:.1%}; Chimera "
        "{chimera_idle:.1%}, {chimera_filled:.1%}. A step gets {one_f_longer:.1%} and {chimera_longer:.1%} longer; "
        "refreshed every {one_f_every:.1f} and {chimera_every:.1f} steps"),
    Row("fill-grid", "How often curvature is refreshed, by a performance model: models, GPUs, depths, micro-batches",
        "(N T_curvature + T_inversion) / T_bubble steps", "The formula has neither pieces of work nor their order. With "
        "recomputation Plenum's bubbles are smaller than the formula's.", grid,
        "simulated, {rows} cases: {least_every:.1f} to {most_every:.1f} steps, median {median_every:.1f}; of {plain} cases "
        "without recomputation the farthest is {most:.1%} from the formula, with it {recomputed:.0%}. Preconditioning makes "
        "a step {short_32:.1f} to {long_32:.1f} % longer with micro-batches of 32, {short_8:.0f} to {long_8:.0f} % with 8. "
        "What waits takes {kept:.0%} of the formula's memory (median)"),
    Row("filled-steps", "Filled steps are hardly longer", "simulated only; the released code never trains in a pipeline",
        "Measured with training in pipelines. Two ranks have few bubbles, and on a GPU four ranks share bandwidth and "
        "power.", measured_steps,
        "{model}, 1F1B: {lamb:.1f} ms a step with LAMB, {kfac:.1f} with K-FAC in bubbles ({longer:+.0%}, refreshed every "
        "{every} steps), {kfac_outside:.1f} outside ({longer_outside:+.0%}); ranks compute {lamb_busy}, {kfac_busy}, "
        "{kfac_outside_busy}", (CPU, GPU), recorded=(
            Recorded("BERT-base, 4 parts of the GPU, 1F1B: 111.9 ms with LAMB, 140.8 with K-FAC in bubbles (+26 %), 161.0 "
                     "outside (+44 %); ranks compute 71.3, 88.2, 75.5 %; a later build took 124.2 ms in bubbles", H200,
                     "2026-11-18", "h200-202611.md", "Pipelines in parts of one GPU",
                     ("111.9 ms", "140.8 ms", "161.0 ms", "71.3 %", "88.2 %", "75.5 %", "124.2 ms")),
            Recorded("the same, Chimera: 98.8 ms with LAMB, 130.0 in bubbles, 129.8 outside", H200, "2026-11-18",
                     "h200-202611.md", "Pipelines in parts of one GPU", ("98.8 ms", "130.0 ms", "129.8 ms")),
            Recorded("BERT-small, 4 ranks of one core, 1F1B: 1,678 ms with LAMB, 1,819 in bubbles (+8 %), 2,310 outside "
                     "(+38 %); ZB-H1 1,583, 1,701 (+8 %), 2,072", "Intel Xeon, 16 cores", "2026-11-18", "xeon-16-202611.md",
                     "Pipelines with K-FAC", ("1,678 ms", "1,819 ms", "+8.4 %", "2,310 ms", "+37.7 %", "1,583 ms",
                                              "1,701 ms", "+7.5 %", "2,072 ms")))),
    Row("time-to-loss", "K-FAC in bubbles reaches LAMB's loss in 50 to 75 % of the time", "50 to 75 %, simulated: steps of "
        "one run by step times of another", "A tiny model, a short run, three learning rates for either, one seed. "
        "Time is simulated as in the paper, with 1F1B on the P100's profile.", time_to_loss,
        "BERT-tiny: held-out loss behind {of} steps LAMB {lamb:.3f}, K-FAC (every 4 steps) {kfac:.3f}; LAMB's is reached "
        "behind {steps}, {share:.0%} of the steps and {time:.0%} of the time", long=True, recorded=(
            Recorded("BERT-mini in a real pipeline of two ranks, trained from start to end, 500 steps, one seed: K-FAC in "
                     "bubbles reaches LAMB's loss behind 59 and 61 % of the steps and 66 and 65 % of the seconds (deferred, "
                     "fresh), Muon behind 58 and 64 %", EPYC, "2026-11-20", "epyc-2-202611.md",
                     "A pipeline trained to a loss", ("293 (59 %)", "306 (61 %)", "208 (66 %)", "202 (65 %)", "289 (58 %)",
                                                      "201 (64 %)")),
            Recorded("BERT-mini, 1,200 steps: held-out loss K-FAC as a pipeline's bubbles allow 3.334, Muon 3.300, LAMB "
                     "5.449, which is not tuned well enough to compare with", H200, "2026-11-18", "h200-202611.md",
                     "Optimizers", ("3.334", "3.300", "5.449", "LAMB is not tuned well enough to compare with")),)),
    Row("phase-one", "BERT-Base and -Large phase 1 on 32 GPUs, batches of 8,192, 7,038 steps", "50 to 75 % of the time", "",
        not_run="needs 32 GPUs, or one for weeks, and Wikipedia."),
)

PAPER = Paper("PipeFisher (arXiv 2211.14133)",
              "the abstract, the released code, and the layer times published with it. The tables of the paper were not "
              "available to us, so its utilisation is that of its released scheduler.", ROWS)
