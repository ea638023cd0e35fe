#!/usr/bin/env python3
"""Measures the claims of the papers behind Plenum and writes bench/reproduce/README.md.

    python3 bench/reproduce                     # the quick rows that this machine can run
    python3 bench/reproduce --rows NAME ...     # these, long ones too
    python3 bench/reproduce --only gpu --build build-cuda
    python3 bench/reproduce --list | --render | --check

Results are stored after every row, so a run that is stopped keeps what it has.
"""

import argparse
import sys
import time

import papers
import render
import store
from lab import Failure, Lab, say, today
from row import CPU, GPU


def choose(options, lab):
    """(row, device) of what is to be run, GPU rows on the GPU where there is one."""
    known = {row.id: row for row in papers.rows()}
    for name in options.rows:
        if name not in known:
            sys.exit(f"there is no row {name}; --list names all")
    chosen = []
    for row in papers.rows():
        if not row.measure or (options.rows and row.id not in options.rows):
            continue
        if row.long and not (options.long or options.rows):
            continue
        for device in row.on:
            if options.only and device != options.only:
                continue
            if device in lab.hardware:
                chosen.append((row, device))
            elif row.on == (GPU,) or options.only == GPU:
                say(f"{row.id}: skipped, there is no GPU or {lab.build} is not built for one")
    return chosen


def measure(row, device, lab):
    lab.device = device
    lab.commands = []
    started = time.monotonic()
    result = {"date": today()}
    try:
        result["figures"] = row.measure(lab)
        row.shows.format(**result["figures"])
    except (Failure, LookupError, ValueError, OSError) as error:
        result.pop("figures", None)
        result["error"] = " ".join(str(error).split())[:200] or type(error).__name__
    result["seconds"] = round(time.monotonic() - started, 1)
    result["commands"] = list(dict.fromkeys(lab.commands))  # what rows share is asked for again and again
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="*", default=[], help="names of rows")
    parser.add_argument("--only", choices=[CPU, GPU], help="what is measured on the CPU, or on a GPU")
    parser.add_argument("--long", action="store_true", help="rows that take minutes as well")
    parser.add_argument("--build", default="build", help="where the programs are (build)")
    parser.add_argument("--output", help="a folder for results and page, in place of those that are kept")
    parser.add_argument("--list", action="store_true", help="print the names of all rows and stop")
    parser.add_argument("--render", action="store_true", help="write the page from what is stored and stop")
    parser.add_argument("--check", action="store_true", help="fail unless the page is what is stored")
    options = parser.parse_args()
    if options.list:
        for row in papers.rows():
            kind = "not run" if not row.measure else ", ".join(row.on) + (", long" if row.long else "")
            print(f"{row.id:28} {kind}")
        return 0
    if options.check:
        faults = render.faults()
        print("\n".join(faults) or f"{len(papers.rows())} rows: the page is what is stored")
        return 1 if faults else 0
    if options.output:
        store.move_to(options.output)
    failed = 0
    if not options.render:
        lab = Lab(options.build)
        for row, device in choose(options, lab):
            result = measure(row, device, lab)
            store.put(lab.hardware[device], row.id, result)
            failed += "error" in result
            say(f"{row.id} ({device}, {result['seconds']} s): {render.shown(row, result)}")
    render.write(options.output or render.FOLDER)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
