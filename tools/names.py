"""Check that a public name has one meaning in src: `python tools/names.py`.

Two laws. A public class has a name of its own, wherever it is defined: annotations show the name without its module.
A name that a package exports (`__all__`) is not exported by another one for another object; functions and constants
that stay within a package are read with their module's name and may meet.

`tools/names.toml` defends the exceptions, each with its reason.
"""

from __future__ import annotations

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = Path("tools/names.toml")


def defined(tree: ast.Module) -> Iterator[tuple[str, bool]]:
    """Yields the public names that a module defines itself, and True for those of classes."""
    for node in tree.body:
        match node:
            case ast.ClassDef(name=name):
                found, is_class = [name], True
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found, is_class = [name], False
            case ast.Assign(targets=targets):
                found, is_class = [each.id for each in targets if isinstance(each, ast.Name)], False
            case ast.AnnAssign(target=ast.Name(id=name)):
                found, is_class = [name], False
            case _:
                continue
        yield from ((name, is_class) for name in found if not name.startswith("_"))


def exported(tree: ast.Module) -> list[str]:
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id="__all__")], value=ast.List(elts=names) | ast.Tuple(elts=names)):
                return [each.value for each in names if isinstance(each, ast.Constant)]
    return []


def origins(tree: ast.Module, module: str, *, is_package: bool) -> dict[str, str]:
    """The module that each imported name comes from; those of a lazy façade are imported under TYPE_CHECKING."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = module.split(".")
            above = base[: len(base) - node.level + is_package] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            found.update({each.asname or each.name: source for each in node.names})
    return found


def meanings(root: Path = ROOT) -> dict[str, list[str]]:
    """The names that break a law, with the modules that define them."""
    classes: defaultdict[str, set[str]] = defaultdict(set)
    own: dict[str, set[str]] = {}
    exports: dict[str, dict[str, str]] = {}
    for file in sorted((root / "src").rglob("*.py")):
        parts = file.relative_to(root / "src").with_suffix("").parts
        is_package = parts[-1] == "__init__"
        module = ".".join(parts[:-1] if is_package else parts)
        tree = ast.parse(file.read_text())
        names = dict(defined(tree))
        own[module] = set(names)
        for name, is_class in names.items():
            if is_class:
                classes[name].add(module)
        imported = origins(tree, module, is_package=is_package)
        exports[module] = {
            name: imported.get(name, module) for name in exported(tree) if name in imported or name in names
        }

    def home(module: str, name: str) -> str:
        """The module that defines what `module` exports, through any number of façades."""
        while name not in own.get(module, ()) and name in exports.get(module, {}) and exports[module][name] != module:
            module = exports[module][name]
        return module

    facades: defaultdict[str, set[str]] = defaultdict(set)
    for module, names_of in exports.items():
        for name in names_of:
            facades[name].add(home(module, name))
    found = {name: modules for name, modules in classes.items() if len(modules) > 1}
    for name, modules in facades.items():
        if len(modules) > 1:
            found[name] = found.get(name, set()) | modules
    return {name: sorted(modules) for name, modules in sorted(found.items())}


def problems(root: Path = ROOT) -> list[str]:
    settings = tomllib.loads((root / SETTINGS).read_text())
    defended = {name for group in settings["defended"] for name in group["names"]}
    found = meanings(root)
    return [
        *(f"{name} has several meanings: {', '.join(found[name])}" for name in found if name not in defended),
        *(f"{SETTINGS} defends {name}, which has one meaning" for name in sorted(defended - found.keys())),
    ]


if __name__ == "__main__":
    lines = problems()
    print("\n".join(lines) or "names: in order")
    sys.exit(bool(lines))
