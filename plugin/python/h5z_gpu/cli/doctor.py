# SPDX-License-Identifier: MIT OR Apache-2.0
"""Finds out why files do not open, or why data is not compressed: plugin, HDF5 libraries, variables, GPU.

Each HDF5 library of this process, of Python's packages and of the system is asked in a process of its own, with the variables
of now: where it looks, what it loads, and a small dataset through it and back. Exit status 1 where something has to be done.
"""
from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shlex
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Optional

from .common import Problem, open_file, say, size
from .places import DEFAULTS, PLUGIN, fault, folder_fault, libraries, opened_by_hdf5, package_of

PACKAGES = ("h5py", "netCDF4", "tables")
_SECONDS = 120  # a library that has not answered by then hangs
_CAPABILITY = [7, 0]  # the lowest that kernels are compiled for


def add(parser: argparse.ArgumentParser) -> None:
    """The command's arguments."""
    parser.add_argument("file", metavar="FILE", nargs="*", help="a file that does not open: what is wrong with it is said too")
    parser.add_argument("--hdf5", metavar="LIBRARY", action="append", default=[], help="an HDF5 library to ask, beside those found")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Asks everything and prints it."""
    for path in args.hdf5:
        if not os.path.isfile(path):
            raise Problem(f"--hdf5 {path}: no such file")
    state = Examination(args.hdf5)
    for path in args.file:
        state.file(path)
    if args.json:
        print(json.dumps(state.report(), indent=1))
    else:
        state.print()
    return 1 if state.problems else 0


def ask(mode: str, *arguments: str, isolated: bool = True, **variables: Optional[str]) -> dict[str, Any]:
    """What `probe.py` answers in a process of its own; "error" where it does not. A variable that is None is unset there."""
    text = Path(__file__).with_name("probe.py").read_text()
    env = {k: v for k, v in (dict(os.environ) | {"HDF5_PLUGIN_PATH": _found_path()} | variables).items() if v is not None}
    try:
        child = subprocess.run([sys.executable, *(["-I"] if isolated else []), "-c", text, mode, *arguments], env=env,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               errors="replace", timeout=_SECONDS)  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"error": f"it has not answered for {_SECONDS} seconds"}
    if child.returncode < 0:
        return {"error": f"the process that asked it was ended by {signal.Signals(-child.returncode).name}"}
    try:
        answer = json.loads(child.stdout.splitlines()[-1])
    except (ValueError, IndexError):
        return {"error": (child.stderr.strip().splitlines() or ["it ended without an answer"])[-1]}
    said = [line for line in child.stderr.splitlines() if line.startswith("h5z-gpu: ")]
    return answer | ({"said": said} if said else {})


def _found_path() -> Optional[str]:
    """HDF5_PLUGIN_PATH as it was before this package changed it."""
    module = sys.modules.get("h5z_gpu.register")
    return module.FOUND if hasattr(module, "FOUND") else os.environ.get("HDF5_PLUGIN_PATH")


class Examination:
    """What was found, and what has to be done about it."""

    def __init__(self, named: list[str]) -> None:
        self.problems: list[dict[str, str]] = []
        self.notes: list[str] = []
        self.files: list[dict[str, Any]] = []
        self.missing = False  # a folder of HDF5_PLUGIN_PATH
        self.own = os.path.join(os.environ.get("H5Z_GPU_PLUGIN_PATH") or str(Path(__file__).parent.parent / "plugin"), PLUGIN)
        self.path = _found_path()
        with tempfile.TemporaryDirectory(prefix="h5z-gpu-doctor.") as scratch, ThreadPoolExecutor(4) as pool:
            mine = "" if fault(self.own) else self.own
            own = pool.submit(ask, "plugin", self.own) if mine else None
            cuda = pool.submit(ask, "cuda")
            order = ("netCDF4", "h5py", "tables")  # the order that hides the most, see `imports`
            together = pool.submit(ask, "packages", *order, isolated=False)
            asked = {p: pool.submit(ask, "hdf5", p, scratch, *([mine] if mine else [])) for p in libraries(named) if not fault(p)}
            self.plugin = {"file": self.own} | (own.result() if own else {"error": fault(self.own)})
            self.cuda, self.together = cuda.result(), together.result()
            self.libraries = {p: a.result() for p, a in asked.items()}
        self.variables()
        self.folders = self.look_into_folders()
        self.check_plugin()
        self.check_libraries()
        self.imports()
        self.settings()
        self.gpu = self.check_gpu()

    def problem(self, what: str, do: str) -> None:
        if not any(p["what"] == what for p in self.problems):
            self.problems.append({"what": what, "do": do})

    @property
    def env(self) -> str:
        """What to type so that programs find the plugin."""
        return f'eval "$({shlex.quote(sys.executable)} -m h5z_gpu env)"'

    # --- what is asked -------------------------------------------------------------------------------------------------

    def variables(self) -> None:
        preload = os.environ.get("HDF5_PLUGIN_PRELOAD")
        if preload == "::":
            self.problem('HDF5_PLUGIN_PRELOAD is "::", which forbids HDF5 every plugin', "unset HDF5_PLUGIN_PRELOAD")
        for folder in (self.path or "").split(":"):
            why = folder_fault(folder) if folder else ""
            if why:
                blind = [self.name(p) for p, a in self.libraries.items() if folder in (a.get("folders") or []) and not a.get("plugin")]
                text = f"HDF5_PLUGIN_PATH names {folder!r}: {why}. HDF5 1.10 does not look into the folders behind it"
                self.problem(text + (f": no filter in {', '.join(blind)}" if blind else ""),
                             "correct HDF5_PLUGIN_PATH, or take that folder out of it")  # fmt: skip
                self.missing = True

    def searched(self) -> list[str]:
        """The folders that HDF5 libraries look into now."""
        if self.path is not None:
            return [f for f in dict.fromkeys(self.path.split(":")) if f]
        told = [f for a in self.libraries.values() for f in a.get("folders") or []]
        return list(dict.fromkeys([*told, *DEFAULTS]))

    def look_into_folders(self) -> dict[str, list[dict[str, Any]]]:
        """The plugins for this filter in the folders that are searched, and other files there that harm."""
        found: dict[str, list[dict[str, Any]]] = {}
        for folder in self.searched():
            for path in opened_by_hdf5(folder):
                why = fault(path)
                ours = os.path.basename(path).startswith("libh5zgpu")
                if not why and ours:
                    answer = ask("plugin", path)
                    why = f"cannot be loaded: {answer['error']}" if "error" in answer else ""
                    if not why and answer["filter"] != 443:
                        why = f"is a plugin for filter {answer['filter']}, not 443" if answer["filter"] else "is no plugin of HDF5"
                    if not why:
                        what = {"file": path, "version": answer.get("version"), "sha256": _digest(path)}
                        found.setdefault(folder, []).append(what)
                if why and (ours or "cut short" in why):
                    found.setdefault(folder, []).append({"file": path, "fault": why})
                    self.problem(f"{path} {why}", "copy the file there again, or take it away")
        good = {os.path.realpath(w["file"]): w for all_ in found.values() for w in all_ if "fault" not in w}
        if len({w["sha256"] for w in good.values()}) > 1:
            listed = ", ".join(f"{w['file']} (version {w['version']}, {w['sha256'][:8]})" for w in good.values())
            self.problem(f"two plugins that differ: {listed}. Each HDF5 takes the first that it meets", "take one of them away")
        return found

    def holders(self) -> list[str]:
        """Folders that are searched and have a plugin that works."""
        return [folder for folder, all_ in self.folders.items() if any("fault" not in w for w in all_)]

    def check_plugin(self) -> None:
        """The package's own plugin."""
        if "error" in self.plugin:
            remedy = ("H5Z_GPU_PLUGIN_PATH names its folder: name another one, or unset it" if os.environ.get("H5Z_GPU_PLUGIN_PATH")
                      else f"{shlex.quote(sys.executable)} -m pip install --force-reinstall WHEEL, the file that the package came as")  # fmt: skip
            self.problem(f"the package's own plugin {self.own} {self.plugin['error']}", remedy)
            return
        mine = _digest(self.own)
        for what in (w for all_ in self.folders.values() for w in all_ if "fault" not in w):
            if what["sha256"] != mine and os.path.realpath(what["file"]) != os.path.realpath(self.own):
                self.notes.append(f"{what['file']} (version {what['version']}) is another file than the package's own plugin "
                                  f"(version {self.plugin['version']}); Python uses the package's, other programs that one")  # fmt: skip

    def check_libraries(self) -> None:
        holders, left = self.holders(), []
        disabled = os.environ.get("HDF5_PLUGIN_PRELOAD") == "::"
        broken = [w["file"] for all_ in self.folders.values() for w in all_ if "fault" in w]
        for path, answer in self.libraries.items():
            name = self.name(path)
            if "error" in answer and "version" not in answer:
                if "was ended by" in answer["error"] and not broken:
                    self.problem(f"{name} crashes when it looks for the filter ({answer['error']})", "report it, with the output of --json")
                elif not broken:
                    self.notes.append(f"{name} cannot be asked: {answer['error']}")
                continue
            if answer["version"] < [1, 10]:
                self.problem(f"{name} is older than 1.10: it reads files with this filter, but what it writes keeps every bit, for it "
                             "cannot tell the filter what a chunk holds", "use HDF5 1.10 or newer to write")  # fmt: skip
            if "failed" in answer:
                self.problem(f"{name}: writing a small dataset and reading it back fails: {answer['failed']}",
                             "report it, with the output of --json")  # fmt: skip
            elif (answer["plugin"] or answer["handed"]) and answer["version"] >= [1, 10] and answer["round_trip"]["stored_bytes"] > 8000:
                self.problem(f"{name} finds the filter, but what it writes is not compressed by it",
                             "look at the lines of h5z-gpu on standard error, and report it")  # fmt: skip
            if answer["plugin"]:
                continue
            # By themselves: the package hands the filter to those of Python's wheels.
            if holders and self.path is not None and not disabled:
                if not self.missing and not broken:
                    self.problem(f"{name} does not load the filter, although {holders[0]} has it", self.env)
            elif not disabled:
                left.append(path)
        if not self.libraries:
            self.problem("no HDF5 library was found", "pip install h5py, or name one with --hdf5")
        from_python = [p for p in left if self.package(p)]
        others = [p for p in left if p not in from_python]
        if from_python and "error" not in self.plugin:
            packages = ", ".join(dict.fromkeys(self.package(p) for p in from_python))
            self.notes.append(f"{packages}: the filter is there after `import h5z_gpu`, and not before; for programs without that line: {self.env}")
        if not others:
            return
        text = f"{', '.join(self.name(p) for p in others)}: programs with it, such as h5dump, do not find the filter"
        if self.path is not None:
            text += f" (HDF5_PLUGIN_PATH is {self.path!r}, and there is no {PLUGIN} in it)"
        served = [p for p, a in self.libraries.items() if a.get("plugin") and not package_of(p)]
        if served or broken or self.missing or "error" in self.plugin:
            self.notes.append(f"{text}; for them: {self.env}")
        elif holders:
            # Somebody has put the plugin into a default folder, and it is another HDF5's.
            looked = dict.fromkeys(f for p in others for f in self.libraries[p]["folders"] or [])
            self.problem(f"{text}: by default it looks in {', '.join(looked)}, and {PLUGIN} is in {', '.join(holders)}",
                         f"copy {PLUGIN} to {next(iter(looked), 'its folder')}, or {self.env}")  # fmt: skip
        else:
            self.problem(text, f"{self.env} in the shell that starts them. Python needs no more than `import h5z_gpu`")

    def imports(self) -> None:
        """netCDF4 names its own folder in HDF5_PLUGIN_PATH where nobody has set it, which hides the default folders."""
        after = self.together.get("after")
        if self.path or not after:
            return
        for path, what in self.together.get("libraries", {}).items():
            alone = self.libraries.get(os.path.realpath(path), {})
            if alone.get("plugin") and not what["finds"]:
                self.problem(
                    f"a program that imports netCDF4 first, and not h5z_gpu, has no filter in {self.name(path)}: netCDF4 sets HDF5_PLUGIN_PATH "
                    f"to {after}, which hides {os.path.dirname(alone['plugin'])}", f"import h5z_gpu in that program, or {self.env}")  # fmt: skip

    def settings(self) -> None:
        for setting in self.plugin.get("status", {}).get("settings", []):
            if "fault" in setting:
                self.problem(setting["fault"], f"correct {setting['name']}, or unset it; it counts as not set now")

    def check_gpu(self) -> str:
        """Whether chunks go to a GPU, in a sentence."""
        status = self.plugin.get("status")
        if status is None:
            return "unknown, since the plugin cannot be asked"
        devices = ", ".join(map(_described, self.cuda.get("devices", [])))
        version = self.cuda.get("cuda")
        driver = f"driver {_driver()}for CUDA {'.'.join(map(str, version))}" if version else "no CUDA driver"
        code = status["gpu_code"]
        wanted = os.environ.get("H5Z_GPU_DEVICE", "").strip()
        why = status["gpu_not_used"]
        if status["gpu"]:
            answer = ask("gpu", self.own, H5Z_GPU_MIN_BYTES="1", H5Z_GPU_LOG="info")
            if answer.get("encoded_on_gpu"):
                return f"{status['gpu']} takes larger chunks, with the code for {status['gpu_device']['image']}; {driver}; {devices}"
            why = "; ".join(answer.get("said", [])) or answer.get("error", "it has encoded nothing")
        old = code is not None and version is not None and version < code["cuda"]
        capable = [d["capability"] for d in self.cuda.get("devices", []) if "capability" in d]
        # CUDA's 100 is "no device": a driver alone is no fault.
        there = devices or os.path.exists("/dev/nvidia0") or self.cuda.get("code") not in (None, 100)
        if wanted == "cpu":
            pass
        elif old:
            self.problem(f"the NVIDIA driver is too old: it is for CUDA {version[0]}.{version[1]}, the kernels need {code['cuda'][0]}."
                         f"{code['cuda'][1]} ({why}); the CPU does the work",
                         f"install driver {code['driver']} or newer; files are the same either way")  # fmt: skip
        elif code and capable and max(capable) < _CAPABILITY:
            newest = max(capable)
            self.problem(f"the GPU is too old: it has compute capability {newest[0]}.{newest[1]}, the kernels need {_CAPABILITY[0]}."
                         f"{_CAPABILITY[1]}; the CPU does the work",
                         "set H5Z_GPU_DEVICE=cpu, or use a GPU of Volta (2017) or newer; files are the same either way")  # fmt: skip
        elif wanted.isdigit():
            self.problem(f"H5Z_GPU_DEVICE asks for GPU {wanted}, and none is used: {why}", "unset H5Z_GPU_DEVICE, or mend what is named")
        elif code and there:
            self.problem(f"there is a GPU, and it is not used: {why}", "mend what is named; the CPU does the work until then")
        return f"not used ({why}); the CPU does the work, files are the same. {driver}{f'; {devices}' if devices else ''}"

    def file(self, path: str) -> None:
        """What is wrong with a file."""
        what: dict[str, Any] = {"file": path}
        self.files.append(what)
        if "error" in self.plugin:
            what["verdict"] = "not looked at, since the plugin does not work"
            return
        from .inspect import examine

        try:
            with open_file(path) as opened:
                found = examine(opened, path, "decode")
        except Problem as why:
            what["verdict"] = str(why)
            self.problem(str(why), "see above")
            self.problems[-1]["do"] = "get the file again, or see what h5z-gpu recover can save of it"
            return
        bad = [w for w in found if w.get("damaged") or "unreadable" in w]
        for w in bad:
            chunks = [f"chunk at {tuple(c['origin'])}" for c in w.get("each", []) if "damaged" in c]
            where = f"{w['damaged']} damaged: {', '.join(chunks[:3])}{' ...' if len(chunks) > 3 else ''}" if chunks else w.get(
                "unreadable", w.get("damaged_index", ""))  # fmt: skip
            self.problem(f"{path} is damaged: {w['name']}: {where}", f"get the file again, or h5z-gpu recover {shlex.quote(path)} OUT")
        ours = sum("asked" in w for w in found)
        what["verdict"] = "damaged" if bad else f"well: {ours} datasets with the filter, every chunk can be decoded"

    # --- what is said --------------------------------------------------------------------------------------------------

    def package(self, path: str) -> str:
        """The Python package that uses this library, "" where none does."""
        used = {os.path.realpath(p): w["package"] for p, w in self.together.get("libraries", {}).items()}
        return used.get(path) or package_of(path)

    def name(self, path: str) -> str:
        path = os.path.realpath(path)
        number = ".".join(map(str, self.libraries.get(path, {}).get("version", [])))
        package = self.package(path)
        return f"HDF5 {number + ' ' if number else ''}{f'of {package} ' if package else ''}({path})"

    def report(self) -> dict[str, Any]:
        from .. import __version__

        return {"version": __version__, "python": platform.python_version(), "machine": platform.machine(), "plugin": self.plugin,
                "HDF5_PLUGIN_PATH": self.path, "folders": self.folders, "libraries": self.libraries, "python_packages": self.together,
                "cuda": self.cuda, "gpu": self.gpu, "files": self.files, "problems": self.problems, "notes": self.notes}  # fmt: skip

    def print(self) -> None:
        from .. import __version__

        say(f"h5z-gpu {__version__}, Python {platform.python_version()} on {platform.machine()}")
        say(f"plugin: {self.own}{'' if 'error' not in self.plugin else ': ' + self.plugin['error']}")
        say(f"HDF5_PLUGIN_PATH: {self.path if self.path is not None else 'not set; each HDF5 looks in its own default folder'}")
        for folder, all_ in self.folders.items():
            for what in all_:
                say(f"  {what['file']}: {what.get('fault') or 'version ' + str(what['version'])}")
        for path, answer in self.libraries.items():
            say(f"{self.name(path)}: {self.state(answer)}")
        for name, version in self.together.get("imported", {}).items():
            say(f"{name}: {version if version is not None else 'not installed'}")
        status = self.plugin.get("status")
        if status:
            settings = [f"{s['name']}={s['value']}" for s in status["settings"] if "value" in s]
            say(f"settings: {', '.join(settings) or 'none, all as they come'}; CPU threads: {status['threads']}")
            fixed = any(s["name"] == "H5Z_GPU_MIN_BYTES" and "value" in s for s in status["settings"])
            limits = ", ".join(f"{f['codec']} {size(f['encode'])}" for f in status["gpu_from_bytes"])
            if status["gpu"] and not fixed and limits:
                say(f"a GPU encodes batches from: {limits}")
        say(f"GPU: {self.gpu}")
        if status and status["gpu_code"]:
            code = status["gpu_code"]
            say(f"GPU code: by {code['compiler']}, for drivers from {code['driver']} on: {', '.join(code['images'])}")
        for what in self.files:
            say(f"{what['file']}: {what['verdict']}")
        for note in self.notes:
            say(f"note: {note}")
        if not self.problems:
            say("", "nothing is wrong")
        for k, p in enumerate(self.problems, 1):
            say("", f"problem {k}: {p['what']}", f"  do: {p['do']}")

    def state(self, answer: dict[str, Any]) -> str:
        """What an HDF5 library does with the filter, in a sentence."""
        if "version" not in answer:
            return answer["error"]
        if answer["plugin"]:
            text = f"loads {answer['plugin']}"
        elif answer["handed"]:
            text = f"does not find the filter by itself{self._where(answer)}; works with it when it is handed over"
        else:
            text = f"does not find the filter{self._where(answer)}"
        if "round_trip" in answer:
            trip = answer["round_trip"]
            text += f"; round trip {trip['raw_bytes']} to {trip['stored_bytes']} bytes, error {trip['largest_error']:.2g} of {trip['bound']:g}"
        return text + (f"; FAILED: {answer['failed']}" if "failed" in answer else "")

    def _where(self, answer: dict[str, Any]) -> str:
        return f" (looks in {', '.join(answer['folders'])})" if answer.get("folders") else ""


def _described(device: dict[str, Any]) -> str:
    """A GPU with its memory and its compute capability, as far as the driver has told them."""
    told = [device["name"]]
    if "memory_bytes" in device:
        told.append(size(device["memory_bytes"]))
    if "capability" in device:
        told.append(f"compute capability {'.'.join(map(str, device['capability']))}")
    return ", ".join(told)


def _digest(path: str) -> str:
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()


def _driver() -> str:
    """The kernel module's version and a blank, as its own file says it; "" where there is none."""
    try:
        text = Path("/proc/driver/nvidia/version").read_text()
    except OSError:
        return ""
    return next((f"{w} " for w in text.split() if w[:1].isdigit() and "." in w), "")
