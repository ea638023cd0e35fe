"""Runs programs for a row, keeps the commands, and makes what several rows share."""

import datetime
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile

from row import CPU, GPU

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WIKIPEDIA = "tests/golden/wikipedia_512_histogram.txt"
SQUAD = "tests/golden/squad_1_1_384_histogram.txt"
COLA = "tests/golden/cola_128_histogram.txt"


class Failure(Exception):
    """A program of a row failed."""


class Lab:
    def __init__(self, build):
        self.build = build
        self.plenum = f"{build}/plenum"
        self.kept = {}
        self.commands = []
        self.directory = tempfile.TemporaryDirectory(prefix="plenum-reproduce-")
        self.device = CPU
        self.hardware = self.look_at_hardware()

    def look_at_hardware(self):
        """Names by device; no GPU: it is not among them."""
        parts = {part["name"]: part for part in self.json(self.plenum, "doctor", "--json")["parts"]}
        cores = parts["cores"]["detail"].split(" ")[0]
        names = {CPU: f"{parts['CPU']['detail']}, {cores} cores"}
        if parts["GPU"]["used"]:
            names[GPU] = re.split(r"[,(]", parts["GPU"]["detail"])[0].strip()
        return names

    def path(self, name):
        """In a directory that is removed in the end."""
        return os.path.join(self.directory.name, name)

    def bench(self, name):
        return f"{self.build}/bench/bench_{name}"

    def run(self, *command):
        """The output of a command; what it writes to standard error is left out."""
        command = [str(word) for word in command]
        self.commands.append(shlex.join(command).replace(self.directory.name, "WORK"))
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no output"]
            raise Failure(f"{os.path.basename(command[0])}: exit code {done.returncode}: {lines[-1]}")
        return done.stdout

    def json(self, *command):
        """The JSON that a command prints, behind what it may print before."""
        output = self.run(*command)
        return json.loads(output if output.lstrip().startswith("{\n") else output.strip().splitlines()[-1])

    def json_lines(self, *command):
        return [json.loads(line) for line in self.run(*command).splitlines()]

    def keep(self, name, make):
        """What `make()` gives, made once for all rows; its commands belong to every row that asks."""
        if name not in self.kept:
            before = len(self.commands)
            made = make()
            self.kept[name] = made, self.commands[before:]
            return made
        made, commands = self.kept[name]
        self.commands += commands
        return made

    def train(self, name, *options):
        """Runs plenum train; returns its steps and its result."""
        run = self.path(name)
        result = self.json(self.plenum, "train", "--run", run, "--device", "cuda" if self.device == GPU else "cpu",
                           "--quiet", "--json", *options)
        return read_lines(run + "/metrics.jsonl"), result

    def words(self, max_length=512):
        """A dataset of random words with Wikipedia's lengths, those that are longer cut to `max_length`."""
        directory = self.path(f"words-{max_length}")
        return self.keep(directory, lambda: self.run(
            "python3", "bench/random_words.py", "--plenum", self.plenum, "--histogram", WIKIPEDIA, "--max-length",
            max_length, "--output", directory).strip())

    def text(self):
        """The demo's text: the Free On-line Dictionary of Computing, or licences without a network."""
        text = self.path("text.txt")
        self.keep("text", lambda: self.run("tools/demo_text", text))
        return text

    def prose(self, max_length):
        """A dataset of the demo's text."""
        text, data = self.text(), self.path(f"prose-{max_length}")

        def prepare():
            self.run(self.plenum, "prepare", text, "--output", data, "--documents", "blank-line", "--max-length",
                     max_length, "--holdout", "2%", "--train-vocab", 8000, "--quiet")
            return data

        return self.keep(data, prepare)

    def capped_histogram(self, max_length):
        """Wikipedia's lengths with those that are longer counted as `max_length`."""
        path = self.path(f"wikipedia-{max_length}.txt")

        def write():
            with open(os.path.join(ROOT, WIKIPEDIA), encoding="ascii") as file:
                counts = [int(line) for line in file]
            counts[max_length - 1] = sum(counts[max_length - 1:])
            with open(path, "w", encoding="ascii") as file:
                file.writelines(f"{count}\n" for count in counts[:max_length])
            self.commands.append(f"# {os.path.basename(path)}: {WIKIPEDIA}, longer sequences counted as {max_length}")
            return path

        return self.keep(path, write)


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_lines(path):
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def tokens_per_second(steps, first):
    """Real tokens; steps before `first` do not count."""
    steps = steps[first:]
    return sum(step["real_tokens"] for step in steps) / sum(step["seconds"] for step in steps)


def losses(steps):
    return [step["loss"] for step in steps]


def greatest_difference(curves):
    """Of any curve from the first, as a share of the loss."""
    return max(abs(a - b) / abs(b) for curve in curves[1:] for a, b in zip(curve, curves[0], strict=True))


def table_rows(markdown, heading):
    """Cells of the first table behind a heading of a Markdown text, without its head."""
    behind = markdown[markdown.index(heading):].splitlines()
    lines = []
    for line in behind:
        if line.startswith("|"):
            lines.append([cell.strip() for cell in line.strip("|\n ").split("|")])
        elif lines:
            break
    return [cells for cells in lines[1:] if not re.fullmatch(r"[-: ]+", cells[0] or "-")]


def today():
    return datetime.date.today().isoformat()


def say(text):
    print(text, file=sys.stderr, flush=True)
