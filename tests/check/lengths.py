# SPDX-License-Identifier: MIT OR Apache-2.0
"""No line above 120 columns, no file above 500 lines, no function above 80, in kernels above 120; what a reader of the
formats has to read stays within 13,000 words.

Sources alone: prose in Markdown is refilled by editors, and its tables are as wide as they must be. The reference
reader is one file, because it is copied as one.
"""

import ast
import re
import sys
from collections import Counter

from tree import ROOT, files, finish

COLUMNS, LINES, FUNCTION, KERNEL, FORMATS = 120, 500, 80, 120, 13000
CODE = (".rs", ".py", ".c", ".h", ".cu", ".cuh", ".java", ".sh", ".mk", "Makefile")
WHOLE = "plugin/python/h5z_gpu/reference.py"


def columns(name, text):
    """Lines that are too wide."""
    for number, line in enumerate(text.split("\n"), 1):
        if len(line) > COLUMNS:
            yield f"{name}:{number}: {len(line)} columns, {COLUMNS} at most"


def lines(name, text):
    """A file that is too long."""
    count = text.count("\n")
    if count > LINES and name != WHOLE:
        yield f"{name}:1: {count} lines, {LINES} at most; split it"


def bare(text):
    """Code of Rust, C, CUDA or Java with comments, strings and characters blanked out; lines stay where they are."""
    token = re.compile(
        r"""//[^\n]*|/\*.*?\*/|b?r(\#*)".*?"\1|"(?:\\.|[^"\\])*"|'(?:\\(?:u\{\w+\}|x\w\w|.)|[^'\\\n])'""", re.S
    )
    return token.sub(lambda m: re.sub(r"[^\n]", " ", m[0]), text)


def brace_functions(name, text):
    """Name, first and last line of each function, from its head to the brace that closes it."""
    code = bare(text)
    if name.endswith(".rs"):
        head = re.compile(r"^[ \t]*(?:pub(?:\([^)]*\))? |const |unsafe |extern\s+|async )*fn (\w+)", re.M)
    else:
        # A head begins a line with a type and ends before a brace: so does neither a call nor a `struct`.
        returns = r"^[ \t]*(?!return\b|else\b|typedef\b)[\w:*&<>,\[\] ]+"
        head = re.compile(returns + r"[ *&](\w+)\([^;{}]*\)[\w ]*(?=\s*\{)", re.M)
    for found in head.finditer(code):
        if found[1] in ("if", "for", "while", "switch"):
            continue
        opened = re.compile(r"[{;]").search(code, found.end())
        # `;` in a head's array type, `[u8; 4]`, ends no function.
        while opened and opened[0] == ";" and code.count("[", found.end(), opened.start()) > code.count(
                "]", found.end(), opened.start()):
            opened = re.compile(r"[{;]").search(code, opened.end())
        if not opened or opened[0] == ";":
            continue
        depth = 0
        for brace in re.compile(r"[{}]").finditer(code, opened.start()):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                start = found.start() + len(found[0]) - len(found[0].lstrip())
                yield found[1], code.count("\n", 0, start) + 1, code.count("\n", 0, brace.start()) + 1
                break


def functions(name, text):
    """Functions that are too long."""
    if name.endswith(".py"):
        spans = [(n.name, n.lineno, n.end_lineno) for n in ast.walk(ast.parse(text))
                 if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    elif name.endswith((".rs", ".c", ".h", ".cu", ".cuh", ".java")):
        spans = brace_functions(name, text)
    else:
        return
    limit = KERNEL if name.endswith((".cu", ".cuh")) else FUNCTION
    for function, first, last in spans:
        if last - first + 1 > limit:
            yield f"{name}:{first}: `{function}` has {last - first + 1} lines, {limit} at most; give its steps names"


def formats(root):
    """Too many words in the sections 1 to 7 of the formats' documents, or an index of rules that is not theirs."""
    texts = [(root / path).read_text(encoding="utf-8") for path in files("FORMAT.md", below=root)]
    parts = [text[text.index("\n## 1 "):text.index("\n## 8 ")] for text in texts if "\n## 8 " in text]
    words = sum(bool(re.search(r"\w", word)) for part in parts for word in part.split())
    if words > FORMATS:
        yield f"codecs/src/FORMAT.md:1: sections 1 to 7 of the formats have {words} words, {FORMATS} at most"
    rules = Counter(rule for part in parts for rule in re.findall(r"^\| ([A-Z])\d+ \|", part, re.M))
    index = {rule: int(count) for part in parts for rule, count in
             re.findall(r"^\| ([A-Z])1 to .* \| (\d+) \|$", part, re.M)}
    if rules != index:
        yield f"codecs/src/FORMAT.md:1: the index of rules has {index}, the documents have {dict(rules)}"


RULES = {"columns": columns, "lines": lines, "functions": functions}


def check(rule, root=ROOT):
    if rule == "formats":
        return list(formats(root))
    found = []
    for path in files(*CODE, below=root):
        found += RULES[rule](str(path), (root / path).read_text(encoding="utf-8"))
    return found


if __name__ == "__main__":
    finish(check(sys.argv[1]))
