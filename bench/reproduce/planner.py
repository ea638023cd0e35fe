"""The study of distributed Transformer training, and its claims about layouts."""

import statistics

from lab import WIKIPEDIA
from row import Paper, Recorded, Row

EPYC = "AMD EPYC, 2 cores"
STUDY = "study-epyc-2-202611.md"
GRID = ("--ranks 1", "--ranks 2", "--ranks 2 --pp 2", "--ranks 2 --tp 2", "--ranks 2 --bucket-bytes 200000",
        "--ranks 2 --bucket-bytes 1000000", "--ranks 2 --bucket-bytes 100000000")
MODEL = "--model bert-mini --layout unpadded --global-batch 8192tok"


def study(lab):
    """Configurations of `plenum study` by their arguments behind those of the model."""
    grid, output = lab.path("grid.txt"), lab.path("study")

    def run():
        with open(grid, "w", encoding="ascii") as file:
            file.writelines(f"{MODEL} {line}\n" for line in GRID)
        lab.commands.append(f"# grid.txt: {MODEL}, and in each line one of: {'; '.join(GRID)}")
        machine = lab.path("machine.toml")
        lab.run(lab.plenum, "calibrate", "--output", machine)
        return lab.json(lab.plenum, "study", "--data", lab.words(), "--output", output, "--grid", grid, "--machine",
                        machine, "--seconds", 4, "--json")

    result = lab.keep("study", run)
    found = {" ".join(of["arguments"]).removeprefix(MODEL).strip(): of for of in result["configurations"]}
    failed = [name for name, of in found.items() if of["failure"]]
    if failed:
        raise ValueError(f"a configuration failed: {failed[0]}")
    return [found[line] for line in GRID], result


def step_ms(configuration):
    return 1e3 * configuration["step"]["measured_seconds"]


def megabytes(configuration):
    return configuration["memory"]["measured_bytes"] / 1e6


def parallelism(lab):
    (one, data, pipeline, tensor, *_), _ = study(lab)
    return {"one": step_ms(one), "data": step_ms(data), "pipeline": step_ms(pipeline), "tensor": step_ms(tensor)}


def slow_links(lab):
    """Data against pipeline parallelism over emulated links."""
    result = lab.json(lab.plenum, "study", "--data", lab.words(), "--output", lab.path("links"), "--grid", "links",
                      "--seconds", 3, "--json")
    times = {}
    for of in result["configurations"]:
        options = dict(zip(of["arguments"][::2], of["arguments"][1::2], strict=False))
        key = options["--emulate-link"], options["--global-batch"]
        times.setdefault(key, {})["--pp" in options] = step_ms(of)
    ratios = {key: both[False] / both[True] for key, both in times.items() if len(both) == 2}
    slowest = min(ratios, key=lambda key: (link_bandwidth(key[0]), tokens(key[1])))
    fastest = max(ratios, key=lambda key: (link_bandwidth(key[0]), tokens(key[1])))
    return {"won": sum(ratio > 1 for ratio in ratios.values()), "of": len(ratios), "slow": " ".join(slowest),
            "slow_ratio": ratios[slowest], "fast": " ".join(fastest), "fast_ratio": ratios[fastest]}


def link_bandwidth(link):
    return float(link.split("bandwidth=")[1].removesuffix("MB/s"))


def tokens(batch):
    return float(batch.removesuffix("tok"))


def plans(lab):
    """The fastest plan with and without a pipeline, by `plenum plan`, in ms of a step."""
    figures = {}
    for key, cluster, ranks, model, batch in (("one_node", "h200", 8, "bert-large", "131072tok"),
                                              ("four_nodes", "h200", 32, "bert-large", "262144tok"),
                                              ("ethernet", "cpu-10gbe", 8, "bert-large", "32768tok")):
        found = lab.json(lab.plenum, "plan", "--cluster", f"recipes/clusters/{cluster}.toml", "--ranks", ranks,
                         "--histogram", WIKIPEDIA, "--model", model, "--global-batch", batch, "--json")["plans"]
        for name, has_pipeline in (("pp", True), ("dp", False)):
            of_kind = [plan for plan in found if (plan["pp"] > 1) == has_pipeline]
            best = min(of_kind, key=lambda plan: plan["step_seconds"])
            figures |= {f"{key}_{name}": 1e3 * best["step_seconds"],
                        f"{key}_{name}_gb": best["memory_bytes"] / 1e9}
    return figures


def memory(lab):
    (one, data, pipeline, tensor, *_), _ = study(lab)
    return {"one": megabytes(one), "data": megabytes(data) / megabytes(one),
            "pipeline": megabytes(pipeline) / megabytes(one), "tensor": megabytes(tensor) / megabytes(one),
            "error": statistics.fmean(abs(of["memory"]["error"]) for of in (one, data, pipeline, tensor))}


def blocks(lab):
    (_, usual, _, _, *sized), _ = study(lab)
    figures = {"usual": step_ms(usual), "usual_exposed": exposed_ms(usual)}
    for name, of in zip(("small", "middle", "large"), sized, strict=True):
        figures |= {name: step_ms(of), f"{name}_exposed": exposed_ms(of)}
    return figures


def exposed_ms(configuration):
    return 1e3 * statistics.fmean(run["exposed_seconds"] for run in configuration["runs"])


def waiting(lab):
    (_, data, pipeline, *_), _ = study(lab)
    figures = {}
    for name, of in (("data", data), ("pipeline", pipeline)):
        figures[name] = 1e3 * statistics.fmean(run["skew_seconds"] for run in of["runs"])
        figures[f"{name}_share"] = figures[name] / step_ms(of)
    return figures | {"bubbles": pipeline["predicted"]["breakdown_seconds"]["bubbles"]
                      / pipeline["step"]["predicted_seconds"]}


def explained(lab):
    _, result = study(lab)
    errors = result["step_errors"]
    return {"mean": errors["mean"], "most": errors["most"], "count": errors["count"],
            "memory": result["memory_errors"]["mean"]}


ROWS = (
    Row("parallelism", "Pipelines beat data parallelism for Transformers", "a finding; no figure seen",
        "Between cores of one machine gradients cost next to nothing, and two ranks of a pipeline wait for each other. "
        "(One rank has both cores, too.) See the next two rows for slow links and clusters.", parallelism,
        "BERT-mini, 8,192 tokens a step, ms: one rank {one:.0f}; two ranks: data {data:.0f}, tensor {tensor:.0f}, pipeline "
        "{pipeline:.0f}", recorded=(
            Recorded("the same, two ranks, ms: data 681, tensor 697, pipeline 830", EPYC, "2026-11-19", STUDY,
                     "Data, pipeline and tensor parallelism on the same ranks", ("680.79", "697.02", "830.21")),)),
    Row("parallelism-links", "The same over slow links", "a finding; no figure seen",
        "A pipeline sends activations, data parallelism gradients: it wins where a step has fewer tokens than the model "
        "has parameters for each channel. Links are emulated between two ranks of one machine.", slow_links,
        "BERT-tiny, 2 ranks: the pipeline is faster in {won} of {of} cases; {slow}: {slow_ratio:.2f}x, {fast}: "
        "{fast_ratio:.2f}x", long=True),
    Row("parallelism-clusters", "The same on clusters", "a finding; no figure seen",
        "Simulated from datasheets; the fastest layout of each kind by `plenum plan`.", plans,
        "simulated, ms of a step without and with a pipeline, BERT-large: 8 H200s {one_node_dp:.1f}, {one_node_pp:.1f}; 32 "
        "on 4 nodes {four_nodes_dp:.1f}, {four_nodes_pp:.1f}; 8 machines of 16 cores over 10 GbE {ethernet_dp:,.0f}, "
        "{ethernet_pp:,.0f}", missing="measured steps on several GPUs or machines."),
    Row("memory-growth", "Memory of all ranks can grow by partitioning", "unexpected growth; no figure seen",
        "Data parallelism doubles what is not divided. A pipeline keeps the word table on its first and last stage, and "
        "several micro-batches on the first.", memory,
        "BERT-mini, one rank {one:.0f} MB; two ranks, times as much: pipeline {pipeline:.2f}, tensor {tensor:.2f}, data "
        "{data:.2f}; predicted to {error:.1%}", recorded=(
            Recorded("the same: pipeline 1.23, tensor 1.25, data 1.98, data with the optimizer divided 1.80", EPYC,
                     "2026-11-19", STUDY, "Memory of all ranks together",
                     ("dp 1 x tp 1 x pp 2 | 591 MB | 602 MB | 1.22 | 1.23", "605 MB | 613 MB | 1.25 | 1.25",
                      "969 MB | 971 MB | 2.00 | 1.98", "881 MB | 883 MB | 1.82 | 1.80")),)),
    Row("block-size", "The size of communicated blocks matters", "a finding; no figure seen",
        "Between threads of one machine a sum takes a millisecond or two, whatever its size.", blocks,
        "BERT-mini, 2 ranks, ms of a step, of them exposed communication: buckets of 0.2 MB {small:.0f}, "
        "{small_exposed:.1f}; 1 MB {middle:.0f}, {middle_exposed:.1f}; 25 MB {usual:.0f}, {usual_exposed:.1f}; 100 MB "
        "{large:.0f}, {large_exposed:.1f}", recorded=(
            Recorded("the same: 0.2 MB 680, 2.2; 1 MB 684, 2.6; 25 MB 681, 2.9; 100 MB 676, 2.6", EPYC, "2026-11-19",
                     STUDY, "Bucket size", ("679.95 | 0.27 | 2.17", "684.00 | 0.27 | 2.59", "680.79 | 0.61 | 2.91",
                                            "675.73 | 0.61 | 2.55")),),
        missing="a network between ranks."),
    Row("waiting-time", "Ranks wait for each other", "a finding; no figure seen",
        "Plenum divides sequences by cost, so data-parallel ranks wait little; in a pipeline waiting is its bubble.",
        waiting, "BERT-mini, 2 ranks: the last rank ends its backward passes {data:.1f} ms after the first "
        "({data_share:.1%} of a step) with data parallelism; a pipeline's bubbles are {bubbles:.0%} of its step", recorded=(
            Recorded("the same: 9.2 ms (1.4 %)", EPYC, "2026-11-19", STUDY, "Waiting time",
                     ("bert-mini unpadded 8192tok, dp 2 | 0.44 | 9.22 | 0.1 % | 1.4 %",)),)),
    Row("explained", "Theory explains most results", "most; no figure seen",
        "Steps and memory are predicted before the run, from a calibration of the machine.", explained,
        "{count} configurations: steps off by {mean:.1%} in the mean, {most:.1%} at most; memory by {memory:.1%}", recorded=(
            Recorded("49 configurations: steps off by 2.8 % in the mean, 10.0 % at most; memory by 2.3 %", EPYC,
                     "2026-11-19", STUDY, "A study: predicted and measured, 2 cores of an AMD EPYC — November 2026",
                     ("mean error 2.8 %", "greatest 10.0 %", "mean error 2.3 %")),)),
    Row("distributed-gpus", "The same on many GPUs", "the paper's hardware and tables were not seen", "",
        not_run="needs several GPUs."),
)

PAPER = Paper("Performance and memory of distributed training (arXiv 2407.02081)",
              "the abstract and the first lines; hardware, models and tables were not available to us.", ROWS)
