#!/usr/bin/env python3
"""Gathers English prose from Debian packages: the text of the convergence study.

Downloads packages by name (`apt-get download`; the host must be a Debian or have its package lists), reads the
documentation in them (HTML, reStructuredText, Markdown, plain text, info, man pages, dictionaries), keeps the
paragraphs that are English sentences, each once over all packages, and writes a JSON line {"text": ...} for each
document: a file, or some pages of a long one. Same packages, same bytes.

    python3 bench/study_text.py --packages-dir debs --out study.jsonl
    plenum prepare study.jsonl --vocab bert-base-uncased-vocab.txt --max-length 128 --holdout 1% --output study-ds
"""

import argparse
import gzip
import hashlib
import html
import io
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile

PACKAGES = """
anarchism ansible apache2-doc apt-doc aptitude-doc-en autoconf-doc bash-doc bind9-doc binutils-doc
cinder-doc clang-14-doc clisp-doc cmake-doc crawl-common csound-doc db5.3-doc debian-faq debian-handbook
debian-policy debian-reference-en debmake-doc developers-reference dict-devil dict-foldoc dict-gcide dict-jargon
dict-wn doc-debian emacs-el erlang-doc exim4-doc-html fish-common fortunes fp-docs-3.2.2 freedombox-doc-en gap-doc
ghc-doc gimp-help-en git-doc glance-doc gnome-user-docs gnumeric-doc golang-1.19-doc grass-doc guile-3.0-doc
harden-doc heat-doc hol-light installation-guide-amd64 ironic-doc keystone-doc kicad-doc-en krb5-doc
libboost1.81-doc libglib2.0-doc libgtk-3-doc libgtk-4-doc libpam-doc libreoffice-help-en-us libssl-doc
libstdc++-12-doc lilypond-doc linux-doc-6.1 llvm-15-doc maint-guide manpages manpages-dev maxima-doc
mit-scheme-doc neutron-doc nodejs-doc nova-doc octave-doc openjdk-17-doc pari-doc perl-doc perl-modules-5.36
postfix-doc postgresql-doc-15 python-astropy-doc python-django-doc python-pandas-doc python-scipy-doc
python-sklearn-doc python-sqlalchemy-doc python-statsmodels-doc python-sympy-doc python3.11-doc
qtbase5-doc-html qtdeclarative5-doc-html r-doc-html racket-doc rust-doc rust-web-doc sagemath-doc sbcl-doc
selinux-policy-doc sqlite3-doc swi-prolog-doc swift-doc tcl8.6-doc tk8.6-doc vim-runtime xorg-docs zsh-doc
""".split()

# Words that every English text is full of, and hardly any table, listing or other language.
COMMON = frozenset(
    "the of and to a in is that it for as with be are on this by or an not which from can at if was have has will "
    "you your his he they their but all one when there may more we i any no so other some such use used its than "
    "also each only into must does do these then".split())

BLOCK = re.compile(
    r"</?(?:p|div|li|ul|ol|dl|dt|dd|h[1-6]|table|tr|td|th|pre|blockquote|section|article|br|hr|body)\b[^>]*>", re.I)
DROPPED = re.compile(
    r"<(script|style|nav|head|pre|svg|footer|header|code-block)\b.*?</\1\s*>|<!--.*?-->", re.I | re.S)
TAG = re.compile(r"<[^>]*>")
SPACE = re.compile(r"[ \t\r\f\v\u00a0]+")
WORD = re.compile(r"[A-Za-z']+")


def html_paragraphs(text):
    text = DROPPED.sub("\n\n", text)
    text = SPACE.sub(" ", text.replace("\n", " "))
    text = TAG.sub("", BLOCK.sub("\n\n", text))
    return html.unescape(text)


def man_paragraphs(text):
    """The sentences of a page, without the requests of roff."""
    lines = []
    for line in text.split("\n"):
        if re.match(r"[.'](\\\"|\s*$|(TP|PP|P|LP|SH|SS|IP|br|sp|nf|fi|RS|RE|EX|EE|TH|HP)\b)", line):
            lines.append("")
        elif re.match(r"[.'](B|I|BR|RB|IR|RI|BI|IB|SM|SB)\b", line):
            font, _, rest = line.partition(" ")
            rest = rest.replace('"', "")
            lines.append(rest if len(font) == 2 else rest.replace(" ", ""))
        elif not line.startswith((".", "'")):
            lines.append(line)
    text = "\n".join(lines)
    text = re.sub(r"\\f(\[[^]]*\]|\([^ ]{2}|.)", "", text)
    text = text.replace("\\-", "-").replace("\\&", "").replace("\\(aq", "'").replace("\\e", "\\")
    return re.sub(r"\\(\([^ ]{2}|\[[^]]*\]|s[-+]?\d|.)", " ", text)


def pod_paragraphs(text):
    parts = re.findall(r"^=\w.*?(?=^=cut|\Z)", text, re.M | re.S)
    return re.sub(r"[A-Z]<+ ?([^<>]*?) ?>+", r"\1", "\n\n".join(parts))


def dictionary_paragraphs(text):
    """Entries, each of which begins where a line is not indented."""
    return re.sub(r"\n(?=\S)", "\n\n", re.sub(r"[{}\\]|\[[^]]{0,40}\]", "", text))


def reader_of(name):
    """How a file's text is made paragraphs, or None for what is no documentation."""
    base = name[:-3] if name.endswith((".gz", ".dz")) else name
    suffix = os.path.splitext(base)[1].lower()
    if re.search(r"/(copyright|changelog[^/]*|NEWS[^/]*|ChangeLog[^/]*|COPYING[^/]*|LICENSE[^/]*)$", base, re.I):
        return None
    if re.search(r"/(genindex|py-modindex|search|hierarchy|functions_\w+|globals_\w+)[^/]*\.html?$", base):
        return None
    # Translations: a folder or a suffix that names another language.
    if re.search(r"[/.](?!en\b)(ar|bg|ca|cs|da|de|el|es|fa|fi|fr|gl|he|hr|hu|id|it|ja|ko|lt|nb|nl|nn|pl|pt|ro|ru|sk|"
                 r"sl|sr|sv|tr|uk|vi|zh)([-_][A-Za-z]{2,4})?(/|\.|$)", base) and "/man" not in base:
        return None
    if suffix in (".html", ".htm", ".xhtml"):
        return html_paragraphs
    if suffix in (".page", ".xml") and "/help/C/" in base:
        return html_paragraphs
    if re.search(r"/share/man/man\w+/", base):
        return man_paragraphs
    if suffix in (".pod", ".pm"):
        return pod_paragraphs
    if suffix == ".dict":
        return dictionary_paragraphs
    if suffix in (".rst", ".md", ".txt", ".info", ".texi", ".org", ".asciidoc", ".adoc"):
        return str
    if re.search(r"\.info-\d+$", base) or re.search(r"/games/fortunes/[^./]+$", base):
        return str
    return None


def is_prose(paragraph):
    if len(paragraph) < 60 or len(paragraph) > 20000:
        return False
    words = WORD.findall(paragraph)
    if len(words) < 10 or sum(map(len, words)) < 0.7 * len(paragraph):
        return False
    common = sum(word.lower() in COMMON for word in words)
    return common >= 0.2 * len(words)


class Collector:
    """Paragraphs, each once over all files."""

    def __init__(self):
        self.seen = set()
        self.repeated = 0

    def text_of(self, text):
        kept = []
        for paragraph in re.split(r"\n[ \t]*\n", text):
            paragraph = " ".join(paragraph.split())
            if not is_prose(paragraph):
                continue
            # Numbers and case aside: pages that differ in a version or a name of a constant say the same.
            key = hashlib.blake2b("".join(WORD.findall(paragraph)).lower().encode(), digest_size=8).digest()
            if key in self.seen:
                self.repeated += len(paragraph)
                continue
            self.seen.add(key)
            kept.append(paragraph)
        return "\n".join(kept)


def files_of(package):
    """(name, bytes) of the package's regular files, by name."""
    tar = subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE)
    files = []
    with tarfile.open(fileobj=tar.stdout, mode="r|") as archive:
        for member in archive:
            if member.isreg() and member.size < 64 << 20 and reader_of(member.name):
                files.append((member.name, archive.extractfile(member).read()))
    if tar.wait() != 0:
        raise SystemExit(f"{package}: dpkg-deb failed")
    return sorted(files)


def decoded(name, data):
    if name.endswith((".gz", ".dz")):
        data = gzip.GzipFile(fileobj=io.BytesIO(data)).read()
    return data.decode("utf-8", errors="ignore")


def pieces_of(text):
    """Of a dictionary or a book, which are one file: documents of some pages."""
    piece, size = [], 0
    for paragraph in text.split("\n"):
        piece.append(paragraph)
        size += len(paragraph)
        if size > 50000:
            yield "\n".join(piece)
            piece, size = [], 0
    yield "\n".join(piece)


def documents_of(package, collector, most_bytes):
    """Texts of the package, at most so many bytes of them: no package is to be most of the text."""
    total = 0
    for name, data in files_of(package):
        for text in pieces_of(collector.text_of(reader_of(name)(decoded(name, data)))):
            if len(text) < 200:
                continue
            total += len(text)
            if total > most_bytes:
                return
            yield text


def download(names, folder):
    folder.mkdir(parents=True, exist_ok=True)
    have = {path.name.split("_")[0] for path in folder.glob("*.deb")}
    for name in names:
        if name in have:
            continue
        done = subprocess.run(["apt-get", "download", "-q", name], cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{name}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages-dir", type=pathlib.Path, required=True, help="where the packages lie or go")
    parser.add_argument("--out", type=pathlib.Path, required=True, help="JSON lines")
    parser.add_argument("--package", action="append", help="a package instead of the list; may be repeated")
    parser.add_argument("--most-mb", type=float, default=10, help="of text from one package")
    parser.add_argument("--no-download", action="store_true", help="read only what lies in --packages-dir")
    arguments = parser.parse_args()
    names = arguments.package or PACKAGES
    if not arguments.no_download:
        download(names, arguments.packages_dir)
    paths = {path.name.split("_")[0]: path for path in sorted(arguments.packages_dir.glob("*.deb"))}
    collector = Collector()
    total = documents = 0
    with arguments.out.open("w", encoding="utf-8") as out:
        for name in sorted(set(names) & set(paths)):
            size = count = 0
            for text in documents_of(paths[name], collector, arguments.most_mb * 1e6):
                json.dump({"text": text}, out, ensure_ascii=False)
                out.write("\n")
                size += len(text)
                count += 1
            total += size
            documents += count
            print(f"{paths[name].name}: {count} documents, {size / 1e6:.2f} MB", flush=True)
    print(f"{documents} documents, {total / 1e6:.1f} MB; {collector.repeated / 1e6:.1f} MB were repeated paragraphs")


if __name__ == "__main__":
    main()
