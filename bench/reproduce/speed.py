"""Tokens a second of the layouts, on the CPU by plenum train, on a GPU by bench_gpu_train."""

from lab import WIKIPEDIA, tokens_per_second
from row import GPU

MEAN_LENGTH = 4_164_796_173 / 16_279_552  # tokens and sequences of Wikipedia at 512
WARM_UP = 3
ROUNDS = 2  # layouts take turns


def gpu_bench(lab, model, layout, steps, *more, lengths=WIKIPEDIA):
    command = (lab.bench("gpu_train"), "--lengths", lengths, "--model", model, "--layout", layout, "--steps", steps,
               *more)
    return lab.keep(command, lambda: lab.json(*command))


def cpu_rates(lab, layouts, max_length):
    """BERT-mini, steps of packs, so every layout trains on the same."""
    rates = {layout: [] for layout in layouts}
    for turn in range(ROUNDS):
        for layout in layouts:
            def run(layout=layout, name=f"{layout}-{max_length}-{turn}"):
                steps, _ = lab.train(name, "--data", lab.words(max_length), "--model", "bert-mini", "--layout", layout,
                                     "--order", "packs", "--global-batch", "4096tok", "--steps", WARM_UP + 8,
                                     "--eval-every", 1000, "--checkpoint-every", 1000, "--seed", 1)
                return tokens_per_second(steps, WARM_UP)
            rates[layout].append(lab.keep(("rate", layout, max_length, turn), run))
    return {layout: max(of_turns) for layout, of_turns in rates.items()}


def rates(lab, layouts, max_length, gpu_model, gpu_steps):
    """The model's name and tokens a second by layout."""
    if lab.device != GPU:
        return "BERT-mini", cpu_rates(lab, layouts, max_length)
    lengths = WIKIPEDIA if max_length == 512 else lab.capped_histogram(max_length)
    name = gpu_model.replace("bert", "BERT")
    return name, {layout: gpu_bench(lab, gpu_model, layout, gpu_steps, lengths=lengths)["tokens_per_second"]
                  for layout in layouts}


def against_padded(layout, max_length, gpu_model, gpu_steps):
    """What a row measures: this layout and the padded one."""
    def measure(lab):
        model, found = rates(lab, ["padded", layout], max_length, gpu_model, gpu_steps)
        return {"model": model, layout: found[layout], "padded": found["padded"],
                "ratio": found[layout] / found["padded"]}
    return measure


unpadded_against_padded = against_padded("unpadded", 512, "bert-large", 60)
