"""Small programs of ours that ask published libraries, so that tests can compare with them.

`make oracles` builds them, once for each state of their sources, into the user's cache; tests use what is built there
and say so where it is not. It has ten minutes on a new machine with two cores. A program that only tests marked `soak`
use stands in `SOAK`, and `make oracles-soak` builds it.

A program answers JSON lines on its standard streams. Go fetches the libraries by its own module proxy; the versions are
pinned in the program's go.mod. A file `package` names a published program that is built as it is. A file `sources`
names the folder whose code is built, with a go.mod next to that file where there is one: one program with several
versions of its libraries. A file `flags` has further flags of `go build`. A program in Python has an environment of
its own, with the libraries that its requirements.txt pins.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

SOURCES = Path(__file__).parent
_ROOT = SOURCES.parents[1]
_VETTED = {"greeter": _ROOT / "docs" / "examples" / "greeter" / "controller-runtime"}
"""Programs that pages show: no test runs them, and `go vet` compiles and checks them."""
SOAK = frozenset({"gardener148", "gardener149", "gardenerapiserver", "gardenerrules", "kustomizecontroller"})
"""Programs that only tests marked `soak` use. May be empty: `make oracles-soak` reports it then, and succeeds."""
_USUAL_PLACE = Path("/usr/local/go/bin/go")
CONTROL_PLANE = "kubeapiserver"
"""The program that is several: see `find_assets`."""
_ROLES = ("etcd", "kube-apiserver", "kube-controller-manager")


class GoProgram:
    """A running program: one JSON request in, one JSON answer out."""

    def __init__(self, *command: Path) -> None:
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, **request: Any) -> Any:
        """The answer to `request`; fails the test when the program itself is at its wits' end."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(orjson.dumps(request) + b"\n")
        self._process.stdin.flush()
        answer = orjson.loads(self._process.stdout.readline())
        assert not isinstance(answer, dict) or "panic" not in answer, answer
        return answer

    def close(self) -> None:
        self._process.communicate()


def go_program(name: str) -> Iterator[GoProgram]:
    """Run the program tests/oracles/<name>; for use in a session fixture. Skips where it is not built."""
    binary = built_program(name)
    if binary is None:
        pytest.skip(why_not(name))
    program = GoProgram(binary)
    yield program
    program.close()


def python_program(name: str) -> Iterator[GoProgram]:
    """Run tests/oracles/<name>/read.py in its environment; for use in a fixture. Skips where that is not built."""
    environment = built_environment(name)
    if environment is None:
        pytest.skip(f"oracle {name} is not built, so the comparison with its library is not made: run `make oracles`")
    program = GoProgram(environment / "bin" / "python", SOURCES / name / "read.py")
    yield program
    program.close()


def build_environment(name: str) -> Path:
    """Install what tests/oracles/<name> pins, unless that was done. Raises CalledProcessError."""
    target = _environment(name)
    with _once(target) as unfinished:
        if unfinished is not None:
            venv.create(unfinished, with_pip=False, clear=True, symlinks=True)
            pins = SOURCES / name / "requirements.txt"
            command = [sys.executable, "-m", "pip", "--python", str(unfinished), "install", "-q"]
            subprocess.run([*command, "--require-hashes", "-r", str(pins)], check=True)
    return target


def built_environment(name: str) -> Path | None:
    """The environment of a program in Python, None when `make oracles` has not made it."""
    environment = _environment(name)
    return environment if environment.exists() else None


def built_program(name: str) -> Path | None:
    """The binary of tests/oracles/<name> as its sources are now, None when `make oracles` has not built it."""
    binary = _binary(name)
    return binary if binary.exists() else None


def why_not(name: str) -> str:
    """The reason of a skipped test without its program."""
    if toolchain() is None:
        return "no Go toolchain here (`go` on PATH): the comparison with the Go libraries is not made"
    target = "oracles-soak" if name in SOAK else "oracles"
    return f"oracle {name} is not built, so the comparison with the Go libraries is not made: run `make {target}`"


def build(name: str) -> Path:
    """Build tests/oracles/<name> unless that was done; several processes may ask. Raises CalledProcessError."""
    binary = _binary(name)
    with _once(binary) as unfinished:
        if unfinished is not None:
            go(_code(name), "build", "-buildvcs=false", *_build_flags(name), "-o", str(unfinished), _package(name))
    return binary


def _code(name: str) -> Path:
    """The folder with the code of a program: that of another one where a file `sources` says so."""
    folder = SOURCES / name
    shared = folder / "sources"
    return SOURCES / shared.read_text().strip() if shared.exists() else folder


def _build_flags(name: str) -> Iterator[str]:
    folder = SOURCES / name
    linking, further = folder / "ldflags", folder / "flags"
    if linking.exists():
        yield f"-ldflags={linking.read_text().strip()}"
    if further.exists():
        yield from further.read_text().split()
    if _code(name) != folder and (folder / "go.mod").exists():
        yield f"-modfile={folder / 'go.mod'}"


def _package(name: str) -> str:
    named = SOURCES / name / "package"
    return named.read_text().strip() if named.exists() else "."


def vet(name: str) -> Path:
    """Vet a program that a page shows unless that was done; gives an empty file. Raises CalledProcessError."""
    mark = _mark(name)
    with _once(mark) as unfinished:
        if unfinished is not None:
            go(_VETTED[name], "vet", ".")
            unfinished.touch()
    return mark


def is_vetted(name: str) -> bool:
    """Returns True if `make oracles` has vetted the program as its sources are now."""
    return _mark(name).exists()


@contextmanager
def _once(target: Path) -> Iterator[Path | None]:
    """Gives the path of a file that becomes `target`, None where that is there; other processes wait meanwhile."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if target.exists():
            yield None
            return
        unfinished = target.with_suffix(".new")
        yield unfinished
        unfinished.replace(target)


def go(folder: Path, *words: str) -> str:
    """Returns the output of the toolchain. Raises CalledProcessError."""
    found = toolchain()
    assert found is not None, "no Go toolchain"
    return subprocess.run([found, *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout


def find_assets() -> Path | None:
    """The folder with `kube-apiserver` and `etcd`, None where there is none."""
    named = os.environ.get("KUBEBUILDER_ASSETS")
    if named:
        return Path(named)
    binary = built_program(CONTROL_PLANE)
    return None if binary is None else _linked(binary)


def _linked(binary: Path) -> Path:
    """A folder next to the binary, with a link by each of its names."""
    folder = cache() / f"{binary.name}.assets"
    folder.mkdir(exist_ok=True)
    for role in _ROLES:
        link = folder / role
        unfinished = folder / f".{role}-{os.getpid()}"
        if not link.is_symlink():
            unfinished.symlink_to(binary)
            unfinished.replace(link)
    return folder


def programs(*, soak: bool) -> list[str]:
    """The names of the programs in Go that only tests marked `soak` use, or of all others."""
    found = {file.parent.name for pattern in ("*/go.mod", "*/sources") for file in SOURCES.glob(pattern)}
    return sorted(name for name in found if (name in SOAK) is soak)


def vetted_programs() -> list[str]:
    """The names of all programs that pages show."""
    return sorted(_VETTED)


def environments() -> list[str]:
    """The names of all programs in Python."""
    return sorted(folder.parent.name for folder in SOURCES.glob("*/requirements.txt"))


def toolchain() -> str | None:
    return shutil.which("go") or (str(_USUAL_PLACE) if _USUAL_PLACE.exists() else None)


def cache() -> Path:
    """The folder of built oracles, outside of the project: they survive `make clean` and a new clone."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "hortus" / "oracles"


def _binary(name: str) -> Path:
    own, code = SOURCES / name, _code(name)
    shared = [] if code == own else sorted(code.iterdir())
    return cache() / f"{name}-{_digest([*sorted(own.iterdir()), *shared])}"


def _mark(name: str) -> Path:
    return cache() / f"{name}-vetted-{_digest(sorted(_VETTED[name].iterdir()))}"


def _environment(name: str) -> Path:
    return cache() / f"{name}-{_digest([SOURCES / name / 'requirements.txt'])}"


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        if path.is_file():
            digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
