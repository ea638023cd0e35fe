"""Results on disk: bench/reproduce/results/<hardware>.json, the last measurement of every row."""

import json
import os
import re

DIRECTORY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "results")


def move_to(directory):
    """Keeps results elsewhere, for a try."""
    global DIRECTORY
    os.makedirs(directory, exist_ok=True)
    DIRECTORY = directory


def path_of(hardware):
    return os.path.join(DIRECTORY, re.sub(r"[^a-z0-9]+", "-", hardware.lower()).strip("-") + ".json")


def read_all():
    """Rows by hardware."""
    found = {}
    for name in sorted(os.listdir(DIRECTORY)):
        if name.endswith(".json"):
            with open(os.path.join(DIRECTORY, name), encoding="utf-8") as file:
                stored = json.load(file)
            found[stored["hardware"]] = stored["rows"]
    return found


def put(hardware, row_id, result):
    """Replaces what is stored of a row."""
    path = path_of(hardware)
    stored = {"hardware": hardware, "rows": {}}
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            stored = json.load(file)
    stored["rows"][row_id] = result
    stored["rows"] = dict(sorted(stored["rows"].items()))
    with open(path + ".new", "w", encoding="utf-8") as file:
        json.dump(stored, file, indent=1, ensure_ascii=False)
        file.write("\n")
    os.replace(path + ".new", path)
