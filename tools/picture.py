"""Draws docs/pictures/tour.svg: a terminal in which Hortus is started and its first cluster is shown.

`python tools/picture.py` starts a fleet in a folder of its own, types `STEPS` at a pseudo-terminal, so that the
commands print their colours, and draws what they print. Where the picture that is there differs in its numbers, blanks
and the order of its lines alone, it stays: times and addresses are others in each run, and processes become ready in
any order. tests/docs compares the picture with the commands of today.
"""

from __future__ import annotations

import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from io import StringIO
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "pictures" / "tour.svg"
WIDTH = 100
"""Columns of the terminal. The picture has more where a line is longer, which a terminal would break anywhere."""
PORT = 6443
"""The port of `hortus up` in the picture. The run takes a free one, since this may be taken."""


class Step(NamedTuple):
    command: str
    last: str = ""
    """The beginning of the last line of the output that is drawn; empty for all lines."""
    silent: bool = False
    """True for what is typed and not drawn."""


STEPS = (
    Step("hortus up -d", last="Hortus is up"),
    Step("export KUBECONFIG=~/.local/state/hortus/kubeconfig"),
    Step("kubectl wait -n kcp-system runtimes --all --for=jsonpath='{.status.state}'=Ready --timeout=90s", silent=True),
    Step("kubectl get runtimes -n kcp-system"),
    Step("sleep 3", silent=True),
    Step("hortus tree demo-2"),
)
_PRELUDE = 'hortus() { if [ "$1" = up ]; then command hortus "$@" --port 0; else command hortus "$@"; fi; }\n'
_COLOURS = [(14, 17, 22), (248, 81, 73), (63, 185, 80), (210, 153, 34), (88, 166, 255), (188, 140, 255), (57, 197, 207)]
_THEME = TerminalTheme((13, 17, 23), (230, 237, 243), [*_COLOURS, (177, 186, 196)], [*_COLOURS, (230, 237, 243)])
_FORMAT = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img"
 aria-label="A terminal: hortus up starts five clusters, kubectl lists them, hortus tree shows one">
<style>
.{unique_id}-matrix {{
 font: {char_height}px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
 line-height: {line_height}px; white-space: pre;
}}
{styles}
</style>
<defs>
{lines}
</defs>
<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>
<g transform="translate({terminal_x}, 16)">
{backgrounds}<g class="{unique_id}-matrix">
{matrix}
</g></g>
</svg>
"""


def typed(home: Path) -> list[tuple[Step, str]]:
    """Each step with its output, typed one after the other in one shell whose home is `home`."""
    mark = "=====end====="
    script = _PRELUDE + "".join(f"{step.command}\necho {mark}\n" for step in STEPS)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "HOME": str(home), "PATH": path, "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    for name in ("KUBECONFIG", "GARDEN_KUBECONFIG", "XDG_STATE_HOME", "NO_COLOR"):
        environment.pop(name, None)
    reader, terminal = pty.openpty()
    try:
        shell = subprocess.Popen(
            ["bash", "-c", script], stdin=terminal, stdout=terminal, stderr=terminal, env=environment, cwd=home
        )
    finally:
        os.close(terminal)
    output = _read(reader).replace(str(home), "~").replace("\r\n", "\n")
    if shell.wait():
        raise SystemExit(f"the commands failed:\n{output}")
    output = re.sub(r"https://127\.0\.0\.1:\d+", f"https://127.0.0.1:{PORT}", output)
    return list(zip(STEPS, output.split(f"{mark}\n"), strict=False))


def _read(descriptor: int) -> str:
    """Everything until the last program that has the terminal closes it."""
    parts = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # how Linux reports the end of a pseudo-terminal
            break
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode()


def drawn(found: list[tuple[Step, str]]) -> str:
    """The picture of the steps that are not silent."""
    shown = [
        (Text(f"$ {step.command}", style="bold"), _lines(step, output)) for step, output in found if not step.silent
    ]
    width = max(WIDTH, *(line.cell_len for command, lines in shown for line in (command, *lines)))
    console = Console(record=True, width=width, file=StringIO(), force_terminal=True, color_system="standard")
    for number, (command, lines) in enumerate(shown):
        if number and shown[number - 1][1]:
            console.print()
        for line in (command, *lines):
            console.print(line, soft_wrap=True)
    return console.export_svg(title="", theme=_THEME, code_format=_FORMAT, unique_id="tour")


def _lines(step: Step, output: str) -> list[Text]:
    """The lines of the output that are drawn: none about what is still on its way, which a run may print or not."""
    lines = [Text.from_ansi(line) for line in output.rstrip("\n").split("\n")] if output.strip() else []
    lines = [line for line in lines if not line.plain.startswith("·")]
    ends = [number for number, line in enumerate(lines, 1) if step.last and line.plain.startswith(step.last)]
    if step.last and not ends:
        raise SystemExit(f"$ {step.command}\nno line begins with {step.last!r}:\n{output}")
    return lines[: ends[0] if ends else None]


def _says_the_same(one: str, other: str) -> bool:
    return _content(one) == _content(other)


def _content(picture: str) -> tuple[str, str, list[str]]:
    """The style; all that surrounds the texts; the texts with the class that colours each. Without widths and order."""
    style, _, rest = picture.partition("</style>")
    text = re.compile(r'<text class="([^"]*)"[^>]*>(.*?)</text>', re.DOTALL)
    texts = sorted(f"{name} {_without_numbers(content)}" for name, content in text.findall(rest))
    return re.sub(r'viewBox="[^"]*"', "", style), _without_numbers(text.sub("", rest)), texts


def _without_numbers(text: str) -> str:
    return re.sub(r"[0-9.]+", "0", re.sub(r"(&#160;|\s)+", " ", text))


def main() -> None:
    if shutil.which("kubectl") is None:
        print(f"{PICTURE.relative_to(ROOT)} stays as it is: kubectl, which it shows, is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        try:
            picture = drawn(typed(home))
        finally:
            state = home / ".local" / "state" / "hortus"
            subprocess.run(
                [sys.executable, "-m", "hortus", "down", "--state-dir", state], check=True, capture_output=True
            )
    if PICTURE.exists() and _says_the_same(PICTURE.read_text(), picture):
        return
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture)
    print(f"wrote {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
