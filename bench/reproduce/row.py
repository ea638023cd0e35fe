"""What the table of published results is made of."""

import dataclasses
import typing

CPU, GPU = "cpu", "gpu"


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A figure that an earlier, dated run left in bench/results. Every string of `quotes` stands in that section."""

    shows: str
    hardware: str
    date: str
    file: str  # in bench/results
    section: str  # its heading
    quotes: tuple


@dataclasses.dataclass(frozen=True)
class Row:
    """One claim. `measure(lab)` gives figures by name, which `shows` writes out with str.format."""

    id: str
    claim: str
    published: str
    differs: str
    measure: typing.Callable | None = None
    shows: str = ""
    on: tuple = (CPU,)  # what it can be measured on
    long: bool = False  # minutes; run with --long or by its id
    recorded: tuple = ()
    not_run: str = ""  # why it cannot be measured here; instead of measure
    missing: str = ""  # what even a measured row leaves open


@dataclasses.dataclass(frozen=True)
class Paper:
    name: str
    source: str  # what of the paper could be read
    rows: tuple
