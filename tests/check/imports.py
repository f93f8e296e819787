# SPDX-License-Identifier: MIT OR Apache-2.0
"""Who imports whom in the Python package: no circle, and the command line imports the package, never the reverse.

Imports inside of functions count, since they run; those for type checkers alone do not. tests/imports.rs does this for
Rust.
"""

import ast

from tree import ROOT, finish

PACKAGE = ROOT / "plugin/python/h5z_gpu"


def imported(tree):
    """Import statements with the level of their dots, but those below `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.level, ".".join(filter(None, (node.module, alias.name)))) for alias in node.names)
        elif not (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)):
            yield from imported(node)


def graph(package):
    """Each module of the package with those that it imports."""
    paths = {path.relative_to(package.parent).with_suffix("").parts: path for path in package.rglob("*.py")}
    modules = {".".join(parts[:-1] if parts[-1] == "__init__" else parts): path for parts, path in paths.items()}
    arrows = {}
    for module, path in modules.items():
        own = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
        arrows[module] = set()
        for level, name in imported(ast.parse(path.read_text(encoding="utf-8"))):
            target = (own[: len(own) + 1 - level] if level else []) + name.split(".")
            while target and ".".join(target) not in modules:
                target.pop()  # a name in a module, or another package
            if target and ".".join(target) != module:
                arrows[module].add(".".join(target))
    return arrows


def circle(arrows):
    """A way from a module back to itself, or None."""
    done = set()

    def walk(way):
        for target in sorted(arrows[way[-1]]):
            if target in way:
                return [*way[way.index(target):], target]
            found = None if target in done else walk([*way, target])
            if found:
                return found
        done.add(way[-1])
        return None

    return next(filter(None, (walk([module]) for module in sorted(arrows) if module not in done)), None)


def check(package=PACKAGE):
    arrows, name = graph(package), package.name
    found = []
    around = circle(arrows)
    if around:
        found.append(f"{name}: a circle of imports, {' -> '.join(around)}")
    for module, targets in sorted(arrows.items()):
        for target in sorted(targets):
            inside = f"{module}.".startswith(f"{name}.cli.")
            if f"{target}.".startswith(f"{name}.cli.") and not inside and module != f"{name}.__main__":
                found.append(f"{module} imports {target}: the package does not import its command line")
    return found


if __name__ == "__main__":
    finish(check())
