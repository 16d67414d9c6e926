"""The console blocks of a page, run as a reader would: what they print must be what the page shows.

A block begins with ```console; lines that begin with `$ ` are typed, `<<END` goes on to a line `END`, and what stands
below is the output, of which `...` leaves any lines out. Numbers may differ, and so may blanks.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from html import unescape
from pathlib import Path
from typing import NamedTuple

from hortus.domains import free_port

ROOT = Path(__file__).resolve().parents[2]
HOME = "/home/you"
"""The reader's home directory, as the pages write it."""

PATIENCE = 580
"""Seconds for all commands of a page, on a machine that has much else to do."""
_BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MARK = "=====step====="
_PRELUDE = """
hortus() { if [ "$1" = up ]; then shift; command hortus up --port 0 "$@"; else command hortus "$@"; fi; }
kubectl() { case " $* " in *" wait "*) command kubectl "$@" --timeout=200s;; *) command kubectl "$@";; esac; }
exec 2>&1 </dev/null
"""
"""Any free port: the page's own may be taken where tests run. A busy machine takes longer than a reader waits."""
_LOCAL = re.compile(r"127\.0\.0\.1:(\d+)")
"""The address of a server that a page starts."""


class Step(NamedTuple):
    command: str
    output: str


def steps(page: Path) -> list[Step]:
    """All commands of a page with their output, in the order of the page."""
    return [step for block in _BLOCK.finditer(page.read_text()) for step in _steps(block[1])]


def _steps(block: str) -> Iterator[Step]:
    for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        lines = part.splitlines()
        end = lines.index("END") + 1 if lines[0].endswith("<<END") else 1
        yield Step("\n".join(lines[:end]), "\n".join(lines[end:]))


def transcript(picture: str) -> list[Step]:
    """The commands of an SVG that tools/picture.py drew, with their output."""
    lines: dict[float, str] = {}
    for place, text in re.findall(r'<text [^>]*\by="([\d.]+)"[^>]*>(.*?)</text>', picture):
        lines[float(place)] = lines.get(float(place), "") + unescape(text).replace("\N{NO-BREAK SPACE}", " ")
    return list(_steps("\n".join(text for _, text in sorted(lines.items()))))


def run(found: list[Step], home: Path, environment: Mapping[str, str]) -> list[str]:
    """Returns the output of each step; all steps run in one shell whose home is `home`."""
    folder = home / "work"
    folder.mkdir(exist_ok=True)
    if not (folder / "examples").exists():
        (folder / "examples").symlink_to(ROOT / "examples")
    path = f"{Path(sys.executable).parent}:{environment['PATH']}"
    script = _PRELUDE + "".join(f"{step.command}\necho '{_MARK}'\n" for step in found)
    script = script.replace("--timeout 5s", "--timeout 20s")  # what a page shows to last is not there at once
    for port in set(_LOCAL.findall(script)):
        script = script.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free_port()}")
    surroundings = {**environment, "HOME": str(home), "PATH": path, "COLUMNS": "100"}
    try:
        done = subprocess.run(
            ["bash", "-c", script], stdout=subprocess.PIPE, text=True, timeout=PATIENCE, cwd=folder, env=surroundings
        )
    except subprocess.TimeoutExpired:
        if any(step.command.startswith("hortus up") for step in found):
            # The page did not come to its `hortus down`, and a fleet would run on for all later tests.
            subprocess.run([shutil.which("hortus", path=path) or "hortus", "down"], check=False, env=surroundings)
        raise
    return done.stdout.replace(str(home), HOME).split(f"{_MARK}\n")[:-1]


def agree(shown: str, printed: str) -> bool:
    """Returns True if `printed` equals the page's text, except for numbers, blanks and the lines that `...` omits."""
    pattern = r"\n".join(r"(?:.*\n)*?.*" if line == "..." else re.escape(line) for line in _plain(shown).splitlines())
    return re.fullmatch(pattern, _plain(printed)) is not None


def _plain(text: str) -> str:
    # An age of kubectl grows from 9s to 2m45s on a busy machine.
    named = re.sub(r"\bhortus-[0-9a-f]{20}\.localhost\b", "hortus-#.localhost", text.strip())
    ages = re.sub(r"\b(\d+[dhms])+\b", "#s", named)
    lines = (re.sub(r"\d+(\.\d+)?", "#", " ".join(line.split())) for line in ages.splitlines())
    return "\n".join(line for line in lines if line)
