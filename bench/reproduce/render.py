"""The README's text from the rows and what is stored of them. The same files give the same bytes."""

import os
import re

import papers
import store

FOLDER = os.path.dirname(os.path.abspath(__file__))
PAGE = "README.md"
HEAD = """# The published results, reproduced

Plenum builds on four papers. Each row below is one of their claims, with what Plenum shows for it. The page is written
by a program: `make reproduce` measures the rows that a machine can run, stores them in [results](results), and writes
this page anew.

    make reproduce                          # the quick rows, about {minutes} minutes on 2 cores
    make reproduce ROWS="packing-optimal"   # some rows, by their names
    make reproduce LONG=1                   # the long rows as well
    make reproduce PRESET=cuda ONLY=gpu     # what a GPU can measure, on a machine that has one

*Measured*: by the row's command, on that day. *Recorded*: an earlier run, in the section of
[bench/results](../results) that the link leads to. *Not run*: needs what we do not have; the row says what.
*Simulated* and *counted* rows are computed from published times and lengths, or from datasheets, so the hardware does
not matter. Where a paper's tables were not available to us, the second column says that no figure was seen; the end of
the page says what was read.
"""


def cell(text):
    """Percentages stand apart from their sign, as everywhere in the documents."""
    return re.sub(r"(\d)%", r"\1 %", " ".join(text.split())).replace("|", "\\|")


def anchor(section):
    kept = "".join(c for c in section.lower() if c.isalnum() or c in " -")
    return kept.replace(" ", "-")


def shown(row, result):
    """What a stored result says."""
    if "error" in result:
        return f"failed: {result['error']}"
    try:
        return row.shows.format(**result["figures"])
    except KeyError as name:
        return f"to be measured again: the row has changed and asks for {name}"


def evidence(row, stored):
    """(what, where) of each measurement: stored ones first, then recorded ones."""
    found = []
    for hardware, rows in stored.items():
        result = rows.get(row.id)
        if result is None:
            continue
        found.append((shown(row, result), f"{hardware}, {result['date']}"))
    for record in row.recorded:
        link = f"[recorded](../results/{record.file}#{anchor(record.section)})"
        found.append((record.shows, f"{record.hardware}, {record.date}, {link}"))
    if row.not_run:
        found.append((f"not run: {row.not_run}", ""))
    if not found:
        found.append(("not measured yet" + ("" if "cpu" in row.on else ": needs a GPU"), ""))
    return found


def command_of(row):
    if not row.measure:
        return ""
    gpu_only = "cpu" not in row.on
    return f"`make reproduce {'PRESET=cuda ' if gpu_only else ''}ROWS={row.id}`"


def table(stored):
    lines = ["| claim | published | Plenum | hardware, date | command | why they differ |", "|---|---|---|---|---|---|"]
    for paper in papers.PAPERS:
        lines.append(f"| **{cell(paper.name)}** | | | | | |")
        for row in paper.rows:
            found = evidence(row, stored)
            differs = row.differs + (f" *Missing:* {row.missing}" if row.missing else "")
            first = [row.claim, row.published, *found[0], command_of(row), differs]
            lines.append("| " + " | ".join(map(cell, first)) + " |")
            for what, where in found[1:]:
                lines.append(f"| | | {cell(what)} | {cell(where)} | | |")
    return lines


def commands(stored):
    lines = ["## Commands", "", "What `make reproduce` ran for each row; `WORK` is a temporary directory.", ""]
    for hardware, rows in stored.items():
        lines += [f"<details><summary>{hardware}</summary>", ""]
        for row in papers.rows():
            if row.id in rows:
                lines += [f"{row.id}:", "```", *rows[row.id]["commands"], "```"]
        lines += ["</details>", ""]
    return lines


def quick_minutes(stored):
    """Of the machine that has measured the most quick rows on its CPU."""
    quick = {row.id for row in papers.rows() if not row.long and "cpu" in row.on}
    seconds = [sum(rows[name]["seconds"] for name in quick & rows.keys()) for rows in stored.values()]
    return max(1, round(max(seconds, default=60) / 60))


def text():
    stored = store.read_all()
    sources = [f"- {paper.name}: {paper.source}" for paper in papers.PAPERS]
    parts = [HEAD.format(minutes=quick_minutes(stored)), *table(stored), "", "## What was read of the papers", "",
             *sources, "", *commands(stored)]
    return "\n".join(parts).rstrip() + "\n"


def write(folder=FOLDER):
    with open(os.path.join(folder, PAGE), "w", encoding="utf-8") as file:
        file.write(text())


def faults():
    """What is wrong with the page and with what it quotes: a line each."""
    found = []
    with open(os.path.join(FOLDER, PAGE), encoding="utf-8") as file:
        if file.read() != text():
            found.append("bench/reproduce/README.md is not what bench/reproduce/results renders to; run "
                         "python3 bench/reproduce --render")
    known = {row.id: row for row in papers.rows()}
    for hardware, rows in store.read_all().items():
        found += [f"results of {hardware} have a row that is not known: {name}" for name in rows if name not in known]
        found += [f"{name} on {hardware}: {shown(known[name], result)}" for name, result in rows.items()
                  if name in known and "figures" in result and shown(known[name], result).startswith("to be measured")]
    for row in papers.rows():
        for record in row.recorded:
            found += [f"{row.id} quotes {quote!r}, which {record.file} does not have under {record.section!r}"
                      for quote in record.quotes if quote not in section_text(record)]
            if not record.quotes:
                found.append(f"{row.id} records figures and quotes nothing")
    return found


def section_text(record):
    path = os.path.join(FOLDER, "..", "results", record.file)
    with open(path, encoding="utf-8") as file:
        lines = file.read().splitlines()
    heads = [i for i, line in enumerate(lines) if line.startswith("#")]
    starts = [i for i in heads if lines[i].lstrip("#").strip() == record.section]
    if not starts:
        return ""
    end = next((i for i in heads if i > starts[0]), len(lines))
    return "\n".join(lines[starts[0]:end])
