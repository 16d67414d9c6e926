"""Check what programs import against what images copy and `pyproject.toml` declares: `python tools/imports.py check`.

`update` writes what can be written: `tools/closures.toml`, which lists for each program the packages of Hortus and the
libraries that it can reach, and the COPY lines and `.dockerignore` of the image. Both end with 1 on a difference.

The closure is static: imports inside of functions count, those for type checkers do not, a lazy façade leads to the
modules of the names that are taken from it, and a string that names a module of ours counts as an import of it.
"""

from __future__ import annotations

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = Path("tools/imports.toml")
CLOSURES = Path("tools/closures.toml")
_TEXT = re.compile(r'"""[\s\S]*?"""')
_TYPES = re.compile(r"^( *)if TYPE_CHECKING:\n((?:\1 +.*\n|[ ]*\n)*)", re.M)
_IMPORT = re.compile(r"^[ \t]*((?:from[ \t]+[.\w]+[ \t]+)?import[ \t]+(?:\([^)]*\)|[^\n(]*))", re.M)
_NAMED = re.compile(r"\"(hortus(?:\.\w+)+)\"")
_DOMAIN_DEPTH = 2
"""Dots in the name of a domain."""
_DOCKER = "Dockerfile"
_IGNORED = ".dockerignore"


class Import(NamedTuple):
    module: str
    name: str
    """The name that is taken from the module; empty for the module itself."""
    typing: bool = False
    """True for an import that only type checkers see."""
    inside: bool = False
    """True for an import inside of a function or a condition."""


class Tree:
    """The modules of `src`, read once each."""

    def __init__(self, root: Path = ROOT) -> None:
        self.root = root
        self.files: dict[str, Path] = {}
        for path in (root / "src").rglob("*.py"):
            parts = path.relative_to(root / "src").with_suffix("").parts
            self.files[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
        self._imports: dict[str, list[Import]] = {}

    def imports(self, module: str) -> list[Import]:
        if module not in self._imports:
            path = self.files[module]
            self._imports[module] = list(imports_of(path.read_text(), module, is_package=path.name == "__init__.py"))
        return self._imports[module]

    def packages_in(self, package: str) -> list[str]:
        """The packages in the folder of a package."""
        depth = package.count(".") + 1
        return sorted(
            name
            for name, path in self.files.items()
            if name.startswith(package + ".") and name.count(".") == depth and path.name == "__init__.py"
        )


def imports_of(text: str, module: str = "", *, is_package: bool = False) -> Iterator[Import]:
    """Yields the imports of a source; texts between triple quotes are no code."""
    code = _TEXT.sub('""', text)
    try:
        statements = _cut_out(code)
    except SyntaxError:
        statements = _parsed(text, module)
    for node, unseen, inside in statements:
        if isinstance(node, ast.Import):
            yield from (Import(each.name, "", unseen, inside) for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _source(node, module, is_package=is_package)
            yield from (Import(base, each.name, unseen, inside) for each in node.names)
    yield from (Import(name, "", inside=True) for name in dict.fromkeys(_NAMED.findall(code)))


def _cut_out(code: str) -> list[tuple[ast.AST, bool, bool]]:
    """The statements of imports by their lines, which is much faster than to parse all. Raises SyntaxError."""
    typing = [found.span(2) for found in _TYPES.finditer(code)]
    return [
        (node, any(start <= found.start() < end for start, end in typing), found[0] != found[0].lstrip())
        for found in _IMPORT.finditer(code)
        for node in ast.parse(found[1]).body
    ]


def _parsed(text: str, module: str) -> list[tuple[ast.AST, bool, bool]]:
    """The statements of a source with an import that its line does not hold whole. Raises SyntaxError."""
    tree = ast.parse(text, module or "<source>")
    blocks = [one for one in ast.walk(tree) if isinstance(one, ast.If) and ast.unparse(one.test) == "TYPE_CHECKING"]
    typing = {id(node) for block in blocks for child in block.body for node in ast.walk(child)}
    return [(node, id(node) in typing, node not in tree.body) for node in ast.walk(tree)]


def _source(node: ast.ImportFrom, module: str, *, is_package: bool) -> str:
    if not node.level:
        return node.module or ""
    base = module.split(".")
    above = base[: len(base) - node.level + is_package]
    return ".".join([*above, *([node.module] if node.module else [])])


class Closure(NamedTuple):
    modules: frozenset[str]
    libraries: frozenset[str]
    """Top-level names of modules that are not ours and not of the standard library."""


def closure(tree: Tree, starts: Iterable[str], found: Mapping[str, str], domains: Iterable[str] = ()) -> Closure:
    """All modules that `starts` can reach. `domains` limits the domains that are found by their folders.

    Of a package that is loaded because of a module inside of it, only imports at the top count.
    """
    chosen, libraries = {f"hortus.domains.{name}" for name in domains}, set[str]()
    used, loaded = set[str](), set[str]()
    waiting = [(one, True) for one in starts]
    while waiting:
        module, is_used = waiting.pop()
        if module in used or (module in loaded and not is_used):
            continue
        waiting += [(module.rpartition(".")[0], False)] if "." in module else []
        if module not in tree.files:
            continue  # a folder without `__init__.py`
        (used if is_used else loaded).add(module)
        for one in tree.imports(module):
            top = one.module.partition(".")[0]
            if one.typing or (one.inside and not is_used) or not top or top in sys.stdlib_module_names:
                continue
            if top != "hortus":
                libraries.add(top)
                continue
            waiting += ((place, True) for place in _targets(tree, one))
            folder = found.get(f"{one.module}:{one.name}")
            for package in tree.packages_in(folder) if folder else ():
                if package.count(".") > _DOMAIN_DEPTH or not chosen or package in chosen:
                    waiting.append((package, True))
    return Closure(frozenset(used | loaded), frozenset(libraries))


def _targets(tree: Tree, one: Import) -> list[str]:
    """The modules that an import of ours leads to."""
    whole = f"{one.module}.{one.name}"
    if whole in tree.files:
        return [whole]
    if one.module not in tree.files:
        return []
    lazily = [each for each in tree.imports(one.module) if each.typing and each.name == one.name]
    return [one.module, *(place for each in lazily for place in _targets(tree, each))]


class Programs(NamedTuple):
    settings: Mapping[str, Any]
    project: Mapping[str, Any]
    closures: Mapping[str, Closure]


def read_programs(tree: Tree) -> Programs:
    """The closures of the scripts of pyproject.toml and of the programs that the settings name."""
    settings = tomllib.loads((tree.root / SETTINGS).read_text())
    project = tomllib.loads((tree.root / "pyproject.toml").read_text())
    starts = {name: {"module": place.partition(":")[0]} for name, place in project["project"]["scripts"].items()}
    starts |= settings["programs"]
    made = {
        name: closure(tree, [given["module"]], settings["found"], given.get("domains", ()))
        for name, given in starts.items()
        if given["module"] in tree.files
    }
    return Programs(settings, project, made)


def closures_text(programs: Programs) -> str:
    """The text of tools/closures.toml: packages without those inside of them, sorted."""
    parts = ["# Written by `python tools/imports.py update`: what each program can import.\n"]
    for name, one in sorted(programs.closures.items()):
        packages = sorted({_part(module) for module in one.modules})
        parts.append(f"[{json.dumps(name)}]\n{_listed('packages', packages)}{_listed('libraries', one.libraries)}")
    return "\n".join(parts)


def _listed(key: str, values: Iterable[str]) -> str:
    return "".join([f"{key} = [\n", *(f'    "{one}",\n' for one in sorted(values)), "]\n"])


def _part(module: str) -> str:
    """The part of Hortus that a module is in: the layer, or one package of the domains and the shell."""
    names = module.split(".")
    return ".".join(names[:3] if names[1:2] == ["domains"] else names[:2])


# Images and packages.


def copied_paths(programs: Programs) -> list[str]:
    """The paths that the image has to copy: what the build reads, and the folders of the packages."""
    project, wheel = programs.project["project"], programs.project["tool"]["hatch"]["build"]["targets"]["wheel"]
    build = ["pyproject.toml", project["readme"], *project["license-files"], "locks/run.txt"]
    return [*build, *wheel["packages"], *wheel["force-include"]]


def docker_copies(text: str) -> list[str]:
    """The paths that the COPY lines of a Dockerfile take from its context."""
    lines = re.findall(r"^COPY (?!--from)(.+)$", text.replace("\\\n", " "), re.M)
    return [word.removeprefix("./") for line in lines for word in line.split()[:-1]]


def image_problems(tree: Tree, programs: Programs) -> list[str]:
    """Paths that the Dockerfile, .dockerignore and the package lack, or name without need."""
    wanted = copied_paths(programs)
    listed = {
        _DOCKER: docker_copies((tree.root / _DOCKER).read_text()),
        _IGNORED: [line[1:] for line in (tree.root / _IGNORED).read_text().splitlines() if line.startswith("!")],
    }
    found = []
    for name, paths in listed.items():
        found += [f"{name}: missing {one}" for one in wanted if one not in paths]
        found += [f"{name}: superfluous {one}" for one in paths if one not in wanted]
    sdist = programs.project["tool"]["hatch"]["build"]["targets"]["sdist"]["only-include"]
    needed = [one for one in wanted if one != "locks/run.txt"]
    found += [f"pyproject.toml: sdist: missing {one}" for one in needed if one not in sdist]
    for name, one in sorted(programs.closures.items()):
        outside = [module for module in one.modules if not _is_copied(tree, module, wanted)]
        found += [f"{name}: {module} is not copied into the image" for module in sorted(outside)]
        if "hortus.testing" in one.modules:
            found.append(f"{name}: imports hortus.testing, which is for tests")
    return found


def _is_copied(tree: Tree, module: str, paths: Iterable[str]) -> bool:
    path = tree.files[module].relative_to(tree.root)
    return any(path.is_relative_to(one) for one in paths)


def chart_problems(root: Path) -> list[str]:
    """Files of charts that no template reads, and names in templates without a file; an image carries one chart."""
    found = []
    for chart in sorted(path for path in (root / "charts").iterdir() if path.is_dir()):
        text = "".join(path.read_text() for path in sorted((chart / "templates").iterdir()))
        patterns = dict.fromkeys(re.findall(r"\.Files\.(?:Get|Glob|Lines) \"([^\"]+)\"", text))
        files = [path.relative_to(chart) for path in sorted((chart / "files").rglob("*")) if path.is_file()]
        lost = [one for one in patterns if not any(path.match(one) for path in files)]
        unread = [path for path in files if not any(path.match(one) for one in patterns)]
        found += [f"charts/{chart.name}: a template reads {one}, which does not exist" for one in lost]
        found += [f"charts/{chart.name}: no template reads {path}" for path in unread]
    return found


# Declared and imported.


def distribution(requirement: str) -> str:
    return re.split(r"[\s<>=!~\[;]", requirement, maxsplit=1)[0]


def declared_problems(tree: Tree, programs: Programs) -> list[str]:
    """Libraries that are imported and not declared, or declared and not imported, in the product and in tests."""
    project, settings = programs.project, programs.settings
    runtime = [distribution(one) for one in project["project"]["dependencies"]]
    extras = [distribution(one) for more in project["project"]["optional-dependencies"].values() for one in more]
    groups = [distribution(one) for more in project["dependency-groups"].values() for one in more]
    local = {path.stem for folder in ("tests", "tools") for path in (tree.root / folder).rglob("*.py")}
    product = {top for module in tree.files for top in _libraries(tree.imports(module), local)}
    others = {
        top
        for folder in ("tests", "tools")
        for path in sorted((tree.root / folder).rglob("*.py"))
        for top in _libraries(imports_of(path.read_text()), local)
    }
    # The plug-in of pytest is for the tests of others, who have pytest.
    product -= {"pytest"} if "hortus.testing" in tree.files else set()
    found = _compared("src", product, [*runtime, *extras], settings)
    found += _compared("tests", others - product, groups, settings, also={*runtime, *extras}, uses=product | others)
    return found + _provided_problems(settings, runtime)


def _libraries(imports: Iterable[Import], local: set[str]) -> set[str]:
    tops = {one.module.partition(".")[0] for one in imports} - {"", "hortus", "tests"}
    return {top for top in tops if top not in sys.stdlib_module_names and top not in local}


def _compared(
    place: str,
    imported: set[str],
    declared: list[str],
    settings: Mapping[str, Any],
    *,
    also: Iterable[str] = (),
    uses: Iterable[str] = (),
) -> list[str]:
    modules = settings["modules"]
    known = {modules.get(name, name).lower() for name in (*declared, *also)}
    allowed = {*settings["provided"], *settings["borrowed"]["names"]}
    programs_only, used = settings["programs_only"]["names"], {one.lower() for one in (*imported, *uses)}
    missing = sorted(top for top in imported if top.lower() not in known and top not in allowed)
    unused = sorted(
        name
        for name in dict.fromkeys(declared)
        if modules.get(name, name).lower() not in used and name not in programs_only
    )
    return [
        *(f"{place}: imports {top}, which pyproject.toml does not declare" for top in missing),
        *(f"pyproject.toml: declares {name}, which nothing in {place} imports" for name in unused),
    ]


def _provided_problems(settings: Mapping[str, Any], runtime: list[str]) -> list[str]:
    """Names that are said to come with a library that is not declared, or does not require them."""
    found = []
    for name, provider in settings["provided"].items():
        required = {distribution(one).lower() for one in metadata.requires(provider) or ()}
        if provider not in runtime or name not in required:
            found.append(f"{SETTINGS}: {name} does not come with {provider}")
    return found


def problems(root: Path = ROOT) -> list[str]:
    tree = Tree(root)
    programs = read_programs(tree)
    path = root / CLOSURES
    found = [*image_problems(tree, programs), *chart_problems(root), *declared_problems(tree, programs)]
    if not path.exists() or path.read_text() != closures_text(programs):
        found += _drift(tomllib.loads(path.read_text()) if path.exists() else {}, programs)
    return found


def _drift(former: Mapping[str, Any], programs: Programs) -> list[str]:
    """The differences between tools/closures.toml and the closures, one line each."""
    now, found = tomllib.loads(closures_text(programs)), []
    for name in sorted({*former, *now}):
        for key in ("packages", "libraries"):
            old, new = (set(one.get(name, {}).get(key, ())) for one in (former, now))
            found += [f"{CLOSURES}: {name}: missing {one}" for one in sorted(new - old)]
            found += [f"{CLOSURES}: {name}: superfluous {one}" for one in sorted(old - new)]
    return found or [f"{CLOSURES} is not as `update` writes it"]


def update(root: Path = ROOT) -> list[str]:
    """Writes the lists that can be written; returns the paths that have changed."""
    programs = read_programs(Tree(root))
    wanted = copied_paths(programs)
    docker, ignored = (root / _DOCKER).read_text(), (root / _IGNORED).read_text()
    texts = {
        CLOSURES: closures_text(programs),
        Path(_IGNORED): _ignoring(ignored, wanted),
        Path(_DOCKER): _copying(docker, programs.project["tool"]["hatch"]["build"]["targets"]["wheel"]),
    }
    changed = [path for path, text in texts.items() if not (root / path).exists() or (root / path).read_text() != text]
    for path in changed:
        (root / path).write_text(texts[path])
    return [str(path) for path in changed]


def _ignoring(text: str, wanted: list[str]) -> str:
    rest = [line for line in text.splitlines() if not line.startswith("!") and line != "*"]
    return "\n".join(["*", *(f"!{one}" for one in wanted), *rest]) + "\n"


def _copying(text: str, wheel: Mapping[str, Any]) -> str:
    """The Dockerfile with a COPY line for each folder of the wheel, in the place of the first there is."""
    folders = [*wheel["packages"], *wheel["force-include"]]
    lines, copied = text.splitlines(), []
    for number, line in enumerate(lines):
        words = line.split()
        if words[:1] == ["COPY"] and len(words) == 3 and words[1] == words[2] and "." not in words[1]:
            copied.append(number)
    if not copied:
        return text
    kept = [line for number, line in enumerate(lines) if number not in copied]
    kept[copied[0] : copied[0]] = [f"COPY {one} {one}" for one in folders]
    return "\n".join(kept) + "\n"


def main(arguments: list[str]) -> int:
    if arguments == ["update"]:
        changed = update()
        print("\n".join(f"wrote {path}" for path in changed) or "imports: in order")
        return 0
    if arguments != ["check"]:
        print("usage: python tools/imports.py check|update", file=sys.stderr)
        return 2
    found = problems()
    print("\n".join([*found, "run: python tools/imports.py update"] if found else ["imports: in order"]))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
