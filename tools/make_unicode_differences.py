#!/usr/bin/env python3
"""Writes plenum/data/text/unicode_differences.cpp: where Hugging Face `tokenizers` and utf8proc disagree.

`tokenizers` takes its character properties from crates of different Unicode versions. This script asks the
installed package about every code point, compares with utf8proc (Unicode 15.0), and writes the differences,
together with the code points that Unicode 15.0 does not assign, so that a newer utf8proc cannot change an id.
Run it with an interpreter that can import `tokenizers`:

    python tools/make_unicode_differences.py            # rewrites the file
    python tools/make_unicode_differences.py --check    # exit 1 if the file would change
"""

import argparse
import ctypes
import ctypes.util
import pathlib
import sys

import tokenizers
from tokenizers.normalizers import NFD, BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "plenum/data/text/unicode_differences.cpp"
BASE_VERSION = "15.0.0"
LOWEST_MARK = 0x0334  # combining class 1
HIGHEST_MARK = 0x0345  # combining class 240
CODE_POINTS = [cp for cp in range(0x110000) if not 0xD800 <= cp < 0xE000]


class Library:
    """utf8proc through its C interface."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.utf8proc_unicode_version.restype = ctypes.c_char_p
        self.lib.utf8proc_category_string.restype = ctypes.c_char_p
        self.lib.utf8proc_get_property.restype = ctypes.POINTER(ctypes.c_uint16)
        version = self.lib.utf8proc_unicode_version().decode()
        if version != BASE_VERSION:
            sys.exit(f"utf8proc must be of Unicode {BASE_VERSION} (utf8proc 2.8), this one is of {version}")
        self.buffer = (ctypes.c_int32 * 16)()

    def category(self, cp):
        return self.lib.utf8proc_category_string(cp).decode()

    def combining_class(self, cp):
        return self.lib.utf8proc_get_property(cp)[1]

    def decompose(self, cp):
        state = ctypes.c_int(0)
        count = self.lib.utf8proc_decompose_char(cp, self.buffer, 16, 1 << 4, ctypes.byref(state))
        return list(self.buffer[:count])

    def lowercase(self, cp):
        return [self.lib.utf8proc_tolower(cp)]


class HuggingFace:
    """What `tokenizers` does with one code point."""

    def __init__(self):
        def bert(**on):
            rules = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
            return BertNormalizer(**{**rules, **on})

        self.clean = bert(clean_text=True)
        self.strip = bert(strip_accents=True)
        self.lower = bert(lowercase=True)
        self.nfd = NFD()
        self.split = BertPreTokenizer()

    def is_removed(self, cp):
        return self.clean.normalize_str("a" + chr(cp) + "b") == "ab"

    def is_punctuation(self, cp):
        return len(self.split.pre_tokenize_str("a" + chr(cp) + "b")) == 3

    def is_nonspacing_mark(self, cp):
        # A character that decomposes is never itself seen by the filter.
        return self.strip.normalize_str(chr(cp)) == ""

    def decompose(self, cp):
        return [ord(c) for c in self.nfd.normalize_str(chr(cp))]

    def lowercase(self, cp):
        return [ord(c) for c in self.lower.normalize_str(chr(cp))]

    def sorts_after(self, cp, mark):
        """Whether canonical ordering moves `cp` behind the `mark` that follows it."""
        text = "a" + chr(cp) + chr(mark)
        return self.nfd.normalize_str(text) != text

    def is_combining(self, cp):
        return self.sorts_after(cp, LOWEST_MARK) or self.sorts_after(HIGHEST_MARK, cp)

    def combining_class(self, cp, marks):
        """Found by sorting against one mark of each class."""
        if not self.is_combining(cp):
            return 0
        below = [c for c, mark in marks if self.sorts_after(cp, mark)]
        above = [c for c, mark in marks if self.sorts_after(mark, cp)]
        between = [c for c, mark in marks if c not in below and c not in above]
        assert len(between) == 1, f"no single combining class for U+{cp:04X}: {between}"
        return between[0]


def ranges(code_points):
    result = []
    for cp in code_points:
        if result and cp == result[-1][1] + 1:
            result[-1][1] = cp
        else:
            result.append([cp, cp])
    return result


def lines_of(items, per_line):
    rows = [items[i : i + per_line] for i in range(0, len(items), per_line)]
    return "\n".join("    " + " ".join(f"{item}," for item in row) for row in rows)


def range_table(name, code_points):
    items = [f"{{0x{first:04X}, 0x{last:04X}}}" for first, last in ranges(code_points)]
    return f"constexpr CodePointRange {name}[] = {{\n{lines_of(items, 5)}\n}};\n"


def mapping_table(name, mappings):
    width = 4
    items = []
    for cp, target in mappings:
        assert len(target) <= width
        cells = ", ".join(f"0x{t:04X}" for t in target)
        items.append(f"{{0x{cp:04X}, {len(target)}, {{{cells}}}}}")
    return f"constexpr CodePointMapping {name}[] = {{\n{lines_of(items, 3)}\n}};\n"


def collect(library, peer):
    assigned = [cp for cp in CODE_POINTS if library.category(cp) != "Cn"]
    is_assigned = set(assigned)
    decomposes = {cp: peer.decompose(cp) for cp in CODE_POINTS}
    marks = {}
    for cp in assigned:
        klass = library.combining_class(cp)
        if klass and decomposes[cp] == [cp] and peer.is_combining(cp):
            marks.setdefault(klass, cp)
    marks = sorted(marks.items())

    found = dict(unassigned=[cp for cp in CODE_POINTS if cp not in is_assigned], removed=[], punctuation=[], nonspacing=[],
                 combining=[], decomposition=[], lowercase=[])
    for cp in CODE_POINTS:
        known = cp in is_assigned
        category = library.category(cp) if known else "Cn"
        if peer.is_removed(cp) != (category in ("Cc", "Cf", "Co") and cp not in (9, 10, 13)) and cp not in (0, 0xFFFD):
            found["removed"].append(cp)
        if peer.is_punctuation(cp) != (category[0] == "P"):
            found["punctuation"].append(cp)
        if decomposes[cp] == [cp]:
            if peer.is_nonspacing_mark(cp) != (category == "Mn"):
                found["nonspacing"].append(cp)
            klass = peer.combining_class(cp, marks)
            if klass != (library.combining_class(cp) if known else 0):
                found["combining"].append((cp, [klass]))
        if decomposes[cp] != (library.decompose(cp) if known else [cp]):
            found["decomposition"].append((cp, decomposes[cp]))
        if peer.lowercase(cp) != (library.lowercase(cp) if known else [cp]):
            found["lowercase"].append((cp, peer.lowercase(cp)))
    return found


def render(found):
    names = ["Unassigned", "Removed", "Punctuation", "Nonspacing", "Combining", "Decomposition", "Lowercase"]
    parts = [
        "// Made by tools/make_unicode_differences.py from Hugging Face tokenizers "
        f"{tokenizers.__version__}, relative to Unicode {BASE_VERSION}.\n// Do not edit.\n\n"
        '#include "plenum/data/text/unicode_differences.h"\n\nnamespace plenum::data {\nnamespace {\n\n// clang-format off'
    ]
    for name in names:
        table = found[name.lower()]
        is_mapping = bool(table) and isinstance(table[0], tuple)
        parts.append((mapping_table if is_mapping else range_table)(f"k{name}", table))
    parts.append("// clang-format on\n\n}  // namespace\n")
    fields = ",\n                                             ".join(f".{name.lower()} = k{name}" for name in names)
    parts.append(
        "const UnicodeDifferences& unicode_differences() {\n"
        f"  static constexpr UnicodeDifferences tables{{{fields}}};\n  return tables;\n}}\n\n"
        "}  // namespace plenum::data\n"
    )
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--utf8proc", default=ctypes.util.find_library("utf8proc"), help="the shared library")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    if options.utf8proc is None:
        sys.exit("utf8proc not found; give its shared library with --utf8proc")
    found = collect(Library(options.utf8proc), HuggingFace())
    for name, table in found.items():
        print(f"{name}: {len(table)} code points", file=sys.stderr)
    text = render(found)
    if not options.check:
        OUTPUT.write_text(text)
    elif OUTPUT.read_text() != text:
        sys.exit(f"{OUTPUT} is not what tokenizers {tokenizers.__version__} gives; run without --check")


if __name__ == "__main__":
    main()
