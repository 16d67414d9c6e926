"""Draws docs/pictures/tour.svg: a terminal in which Hortus is started and its first cluster is shown.

`python tools/picture.py` starts a fleet in a folder of its own, types `STEPS` at a pseudo-terminal, so that the
commands print their colours, and draws what they print. tests/docs compares the picture with the commands of today.
"""

from __future__ import annotations

import os
import pty
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
"""Columns."""


class Step(NamedTuple):
    command: str
    lines: int = 0
    """The first lines of the output that are drawn; 0 for all."""
    silent: bool = False
    """True for what is typed and not drawn."""


STEPS = (
    Step("hortus up -d", lines=5),
    Step("export KUBECONFIG=~/.local/state/hortus/kubeconfig"),
    Step("kubectl wait -n kcp-system runtimes --all --for=jsonpath='{.status.state}'=Ready", silent=True),
    Step("kubectl get runtimes -n kcp-system"),
    Step("sleep 3", silent=True),
    Step("hortus tree demo-2"),
)
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
<clipPath id="{unique_id}-clip-terminal"><rect width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
<rect width="{width}" height="{height}" rx="8" fill="#0d1117"/>
<g transform="translate({terminal_x}, 16)" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}<g class="{unique_id}-matrix">
{matrix}
</g></g>
</svg>
"""


def typed(home: Path) -> list[tuple[Step, str]]:
    """Each step with its output, typed one after the other in one shell whose home is `home`."""
    mark = "=====end====="
    script = "".join(f"{step.command}\necho {mark}\n" for step in STEPS)
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
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="standard")
    for number, (step, output) in enumerate(one for one in found if not one[0].silent):
        lines = output.rstrip("\n").split("\n") if output.strip() else []
        if number and lines:
            console.print()
        console.print(Text(f"$ {step.command}", style="bold"))
        for line in lines[: step.lines or None]:
            console.print(Text.from_ansi(line), soft_wrap=True)
    return console.export_svg(title="", theme=_THEME, code_format=_FORMAT, unique_id="tour")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        try:
            picture = drawn(typed(home))
        finally:
            state = home / ".local" / "state" / "hortus"
            subprocess.run(
                [sys.executable, "-m", "hortus", "down", "--state-dir", state], check=True, capture_output=True
            )
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(picture)
    print(f"wrote {PICTURE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
