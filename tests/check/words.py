# SPDX-License-Identifier: MIT OR Apache-2.0
"""Words that were given up, each with what took its place, and phrases that spare a noun: a stranger reads them twice.
What a release's frozen files and the licences say is left alone."""

import re

from tree import ROOT, files, finish

RETIRED = {
    r"planes-dense": "`planes` has one level",
    r"\blevels? [AB]\b": "`planes` has one level",
    r"\ban[\s/!]+\[?`Request`": "a [`Request`]",
    r"(?i)\b(?:so many|of which one)\b": "the number's name",
    r"(?i)\bwhat keeps\b": "the codec, or the cause",
    r"(?i)\b(?:is|are) the CPU's\b": "the CPU codes it",
    r"(?i)\bonce more\b": "again",
    r"\b(?:an?|the|same|whole|two|every)[ _]asks?\b": "request",
}
ENDINGS = (".rs", ".py", ".c", ".h", ".cu", ".cuh", ".sh", ".mk", "Makefile", ".md", ".toml", ".1")
OWN = "tests/check/"
APART = (OWN, "tests/vectors/", "tests/files/")


def check(root=ROOT):
    found = []
    for path in files(*ENDINGS, below=root):
        if str(path).startswith(APART):
            continue
        text = (root / path).read_text(encoding="utf-8")
        for pattern, instead in RETIRED.items():
            for hit in re.finditer(pattern, text):
                line = text.count("\n", 0, hit.start()) + 1
                found.append(f"{path}:{line}: `{hit[0]}` was given up: {instead}")
    return found


if __name__ == "__main__":
    finish(check())
