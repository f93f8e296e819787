# SPDX-License-Identifier: MIT OR Apache-2.0
"""Whether a copy of an HDF5 file is the file, by h5dump and h5diff.

h5dump lists both files: headers, types, links, attributes, properties, values. Left out of its texts are names of
files, addresses and compressed sizes; and, where the copy's dataset has the filter and the file's has not, filters and
layout. `Copy` is one run of a command over one file, `judge` says what is wrong with it.

H5Z_GPU_HDF5_TOOLS names the folder of a newer HDF5's programs: version 1.10 cannot list references of 1.12, complex
numbers, and what the newest formats hold.
"""
import difflib
import functools
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

import h5py
import odd_files

TOOLS = os.environ.get("H5Z_GPU_HDF5_TOOLS", "")
BOUND = 1e-3
LONGEST = 60  # seconds for one command on one file
BESIDE = {"HDF5_EXTFILE_PREFIX": "${ORIGIN}"}
COMMANDS = {"lossless": ("repack", "--lossless"), "bound": ("repack", f"--absolute={BOUND}"), "recover": ("recover",)}
LOST = "broken"  # the dataset whose header `damage` overwrites

RUN = """
import contextlib, io, json, os, sys, traceback
from h5z_gpu.cli import main

for line in sys.stdin:
    out, err = io.StringIO(), io.StringIO()
    sys.stdout.flush()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = main(json.loads(line))
        except SystemExit as end:
            status = end.code
        except BaseException:
            traceback.print_exc()
            status = 99
    print(json.dumps([status, out.getvalue(), err.getvalue()]), flush=True)
"""


@dataclass
class Copy:
    """What a command made of a file; `whole` is that file before it was damaged."""

    name: str
    command: str
    source: Path
    made: Path
    status: int = 0
    said: str = ""
    out: str = ""
    whole: Optional[Path] = None


def carry_out(copies, env):
    """Runs the commands in one process after the other; one that dies is told of with its signal as the status, and one
    that takes over LONGEST seconds with 124."""
    waiting = list(copies)
    while waiting:
        with tempfile.TemporaryFile() as lines, tempfile.TemporaryFile() as errors:
            lines.write(b"".join(json.dumps([*COMMANDS[c.command], str(c.source), str(c.made)]).encode() + b"\n"
                                 for c in waiting))
            lines.seek(0)
            process = subprocess.Popen([sys.executable, "-c", RUN], stdin=lines, env=env, stdout=subprocess.PIPE,
                                       stderr=errors, bufsize=0)
            while waiting and (answered := select.select([process.stdout], [], [], LONGEST)[0]):
                line = process.stdout.readline()
                if not line:
                    break
                if line.startswith(b"["):
                    c = waiting.pop(0)
                    c.status, c.out, c.said = json.loads(line)
            if not waiting:
                process.communicate()
                return
            if not answered:
                process.kill()
            process.communicate()
            errors.seek(0)
            c = waiting.pop(0)
            c.status = process.returncode if answered else 124
            c.said = f"the process ended with {c.status}: {errors.read()[-300:].decode(errors='replace')}"


# --- texts of h5dump --------------------------------------------------------------------------------------------------
def tool(name, *arguments, folder=TOOLS):
    """Runs one of HDF5's programs, which finds values beside a file; (status, output, errors)."""
    try:
        r = subprocess.run([os.path.join(folder, name), *map(str, arguments)], text=True, errors="backslashreplace",
                           env=os.environ | BESIDE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=40)
    except subprocess.TimeoutExpired:  # h5diff follows each way through a graph of links
        return 124, "", "takes over 40 seconds"
    return r.returncode, r.stdout, r.stderr


def dump(path, *options, folder=TOOLS):
    """What h5dump lists, in lines, or why it fails."""
    status, out, err = tool("h5dump", *options, path, folder=folder)
    if status:
        return None, (err.strip().splitlines() or [f"status {status}"])[0]
    return _plain(out.replace(str(path), "")).splitlines(), ""


def _plain(text):
    """Without the file's name, addresses and compressed sizes."""
    text = text.split("\n", 1)[1]
    text = re.sub(r"\b(DATASET|GROUP|DATATYPE|OBJECT|ATTRIBUTE) +\d+ +(?=[\"/])", r"\1 ", text)
    text = re.sub(r"\bOFFSET \d+", "OFFSET", re.sub(r'"(/?)#\d+"', r'"\1#"', text))
    text = re.sub(r'(ATTRIBUTE "[^"\n]*")\n +\{', r"\1 {", text)  # it breaks lines by the length of addresses
    return re.sub(r"SIZE \d+ \([\d.]+:1 COMPRESSION\)", "SIZE compressed", text)


def without(lines, what):
    """Lines but for the blocks that begin with one of these words."""
    kept, depth = [], 0
    for line in lines:
        if depth or re.match(what, line.strip()):
            depth += line.endswith("{") - (line.strip() == "}") if '"' in line else line.count("{") - line.count("}")
            continue
        kept.append(line)
    return kept


PROPERTIES = r"(STORAGE_LAYOUT|FILTERS|ALLOCATION_TIME) \{"


def _sections(lines):
    """Lines with the properties of each dataset taken out of them, and those properties."""
    kept, taken, block = [], [], None
    for line in lines:
        if block is None and re.match(PROPERTIES, line.strip()):
            block = [line.strip()]
            end = line[: len(line) - len(line.lstrip())] + "}"
            if block[0].startswith("STORAGE"):
                kept.append("properties")
                taken.append([])
        elif block is not None:
            block.append(line.strip())
            if line.rstrip() == end:
                taken[-1].append("\n".join(block))
                block = None
        else:
            kept.append(line)
    return kept, taken


def compare(before, after):
    """Differences of two listings but for datasets that have got the filter."""
    before, of_before = _sections(before)
    after, of_after = _sections(after)
    wrong = [line for line in difflib.unified_diff(before, after, n=0) if not line.startswith(("--- ", "+++ ",
                                                                                                         "@@"))]
    if not wrong:
        for x, y in zip(of_before, of_after):
            if x != y and not any("443" in block for block in y if block.startswith("FILTERS")):
                wrong += [f"- {' '.join(x)}", f"+ {' '.join(y)}"]
    return wrong[:12]


# --- verdicts ---------------------------------------------------------------------------------------------------------
REFUSED, SAME, NOT_LISTED, TOLD = "refused", "same", "not listed", "told"
NOT_MADE = "not made"
WELL = (SAME, REFUSED, NOT_LISTED, TOLD, NOT_MADE)


def judge(copy):
    """(verdict, what is wrong): SAME, REFUSED with its sentence, NOT_LISTED by h5dump, TOLD: `recover` says what it
    could not read of a file that nobody has damaged here; else the kind of a fault."""
    if copy.status == 2 and re.fullmatch(r"h5z-gpu \w+: [^\n]+\n", copy.said) and not copy.made.exists():
        return REFUSED, copy.said.split(": ", 1)[1].strip()
    expected = (0, 1) if copy.command == "recover" else (0,)
    if copy.status not in expected or "Traceback" in copy.said or not copy.made.exists():
        return "fails", f"status {copy.status}: {copy.said.strip()[-400:]}"
    block = _block(copy.source)
    if block != _block(copy.made):
        return "differs", "user block"
    # Values of datasets are h5diff's where they may differ, and all digits of the others.
    options = ("-w", "9000", "-B", "-p", *(("-A",) if copy.command == "bound" else ()))
    whole = copy.whole or copy.source
    before, why, folder, less = listing(whole, options)
    if before is None:
        return NOT_LISTED, why
    after, why = dump(copy.made, *options, *less, folder=folder)
    if after is None:
        return "differs", f"h5dump does not list the copy: {why}"
    if copy.command == "recover":
        before = without(before, rf'DATASET "{LOST}" ')
    asked = 'ATTRIBUTE "(lossy_compression|_least_significant|history")' if copy.command == "bound" else "nothing else"
    before = without(before, asked)
    wrong = compare(before, without(after, asked))
    if wrong and whole == copy.source:
        if dump(whole, *options, *less, folder=folder)[0] != listing(whole, options)[0]:
            return NOT_LISTED, "h5dump lists it otherwise each time"
        named = as_the_source(copy, lambda made: dump(made, *options, *less, folder=folder)[0])
        wrong = compare(before, without(named or after, asked))
    wrong = wrong or different_values(whole, copy.made, copy.command == "bound")
    if wrong and copy.command == "recover" and copy.whole is None and copy.status == 1:
        return TOLD, " ".join(line for line in copy.out.splitlines() if line.startswith("lost: "))[:400]
    return ("differs", "\n".join(wrong)) if wrong else (SAME, "")


@functools.lru_cache(maxsize=4)
def listing(path, options):
    """What the newest h5dump that can lists of a file: its lines or None, why not, its folder and further options."""
    for folder, less in ((TOOLS, ()), ("", ()), (TOOLS, ("-A",)), ("", ("-A",))):
        lines, why = dump(path, *options, *less, folder=folder)
        if lines is not None:
            break
    return lines, why, folder, less


def as_the_source(copy, look):
    """What `look` says of the copy under the name of its source, beside the same files: links of others lead to it."""
    with tempfile.TemporaryDirectory() as folder:
        for path in copy.source.parent.iterdir():
            os.symlink(path, Path(folder, path.name))
        made = Path(folder, copy.source.name)
        made.unlink()
        shutil.copy(copy.made, made)
        return look(made)


def _block(path):
    """The user block."""
    data = path.read_bytes()[: 1 << 16]
    at = 0
    while data[at : at + 8] != b"\x89HDF\r\n\x1a\n" and at < len(data):
        at = at * 2 or 512
    return data[:at]


def different_values(source, made, bound):
    """What h5diff says of objects that both have, unless it says it of the file beside itself."""
    options = ("-d", BOUND) if bound else ("--exclude-path", f"/{LOST}")

    def said(other):
        status, out, err = tool("h5diff", *options, source, other)
        text = re.sub(r"HDF5: infinite loop closing library\n.*\n?", "", (out + err).replace(str(other), ""))
        # Status 1 without a word: the copy has attributes that the file has not, those that say what was lost.
        silent = [] if status == 0 or (bound and status == 1) else [f"status {status}"]
        return text.splitlines()[:6] or silent

    found = said(made)
    if found:
        same = made.with_suffix(".same")  # h5diff does not look into one file twice
        shutil.copy(source, same)
        found = found != said(same) and found
    return found or []


# --- many files -------------------------------------------------------------------------------------------------------
def damage(path, out):
    """A copy of a file whose dataset LOST has a header that HDF5 cannot read: the rest goes into a new file."""
    with h5py.File(path) as f:
        at = h5py.h5o.get_info(f[LOST].id).addr + f.userblock_size
    data = bytearray(path.read_bytes())
    data[at : at + 40] = b"\xff" * 40
    out.write_bytes(data)


def not_made(names, folder, env):
    """Makes the files of these names in a folder; those that HDF5 does not make, with its reasons. Where it crashes,
    each is made in a process of its own."""
    r = subprocess.run([sys.executable, odd_files.__file__, str(folder)], input="\n".join(names), env=env, text=True,
                       stdout=subprocess.PIPE)
    if r.returncode == 0:
        return json.loads(r.stdout.splitlines()[-1])
    if len(names) == 1:
        return {names[0]: f"HDF5 crashed: status {r.returncode}"}
    return {key: why for name in names for key, why in not_made([name], folder, env).items()}


def judge_all(names, folder, env, commands=tuple(COMMANDS)):
    """Makes the files of these names in a folder, runs the commands over each, and judges what they made. Gives
    (name, command, verdict, why)."""
    made = not_made(names, folder, env)
    found = [(name, "make", NOT_MADE, why) for name, why in made.items()]
    copies = []
    for name in names:
        if name in made:
            continue
        source = folder / f"{name}.h5"
        for command in commands:
            if command == "recover":
                damaged = source.with_suffix(".damaged.h5")
                damage(source, damaged)
            copies.append(Copy(name, command, damaged if command == "recover" else source,
                               folder / f"{name}.{command}.h5", whole=source))
    carry_out(copies, env)
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for copy, (verdict, why) in zip(copies, pool.map(judge, copies)):
            found.append((copy.name, copy.command, verdict, why))
    return found


def table(found):
    """Verdicts by command, and each refusal once."""
    count = Counter((command, verdict) for _, command, verdict, _ in found)
    lines = [f"{command:10} {verdict:12} {n:6}" for (command, verdict), n in sorted(count.items())]
    refusals = Counter(re.sub(r"\S*/\S*|'[^']*'|\d+", "…", why) for _, _, verdict, why in found if verdict == REFUSED)
    return lines + [f"{n:6} × {why}" for why, n in refusals.most_common()]


def main(folder, pattern="", step="0:1", commands="lossless,bound,recover"):
    """Judges all files whose name has the pattern in it, a hundred at a time; keeps those with a fault."""
    from conftest import PLUGIN, ROOT

    paths = dict.fromkeys(("HDF5_PLUGIN_PATH", "H5Z_GPU_PLUGIN_PATH"), str(PLUGIN.parent))
    env = os.environ | BESIDE | paths | {"PYTHONPATH": f"{ROOT}/plugin/python:{ROOT}/tests/hosts"}
    names = [n for n in odd_files.cases() if re.search(pattern, n)][int(step.split(':')[0]) :: int(step.split(':')[1])]
    found = []
    for k in range(0, len(names), 100):
        part = Path(folder, f"{k:04}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        now = judge_all(names[k : k + 100], part, env, commands.split(","))
        found += now
        faulty = {name for name, _, verdict, _ in now if verdict not in WELL}
        for path in part.iterdir():
            if not any(path.name.startswith(name + ".") for name in faulty):
                path.unlink()
        for name, command, verdict, why in now:
            if verdict != SAME:
                print(f"{name} {command}: {verdict}: {why}", flush=True)
    print(*table(found), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
