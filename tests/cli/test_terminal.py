"""Commands in real terminals, pipes and locales: colours, closed outputs, encodings, signals, values of options."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.cli.conftest import Fleet
from tests.cli.terminals import program, shown_in_terminal, terminal, written_to
from tests.scenarios.running import environment, typed

from hortus.cli.shell import app

RED = b"\x1b[31m"
FULL = "error: the output cannot be written: No space left on device\n"


def shell(line: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A line of bash in which `hortus` is ours."""
    path = f"{Path(sys.executable).parent}:{environment()['PATH']}"
    return subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        capture_output=True,
        text=True,
        env=environment(PATH=path, **more),
        timeout=60,
    )


def test_a_full_disk_is_one_line_and_a_closed_output_is_none(fleet: Fleet) -> None:
    command = f"hortus --state-dir {fleet.folder} get clusters"
    full = shell(f"{command} > /dev/full")
    assert (full.returncode, full.stderr) == (1, FULL)
    for ending in ("| true", "| head -1 > /dev/null", ">&-"):
        closed = shell(f"{command} {ending}")
        assert (closed.returncode, closed.stdout, closed.stderr) == (0, "", ""), ending


@pytest.mark.parametrize("words", ["get clusters", "tree one", "get clusters -o yaml", "kubeconfig one", "--help"])
def test_no_way_to_write_has_other_errors_than_the_others(fleet: Fleet, words: str) -> None:
    command = ("--state-dir", str(fleet.folder), *words.split())
    assert written_to(os.open("/dev/full", os.O_WRONLY), *command) == (1, FULL)
    reader, writer = os.pipe()
    os.close(reader)
    assert written_to(writer, *command) == (0, "")


def test_no_encoding_of_the_output_is_an_error(fleet: Fleet) -> None:
    line = f"hortus tree one --state-dir {fleet.folder}"
    for more in (
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"LC_ALL": "POSIX"},
    ):
        shown = shell(line, **more)
        assert (shown.returncode, shown.stderr) == (0, "")
        assert shown.stdout.startswith("✓ GardenerCluster kcp-system/one")
    latin = shell(f"{line} | iconv -f latin1 -t utf-8", PYTHONIOENCODING="latin-1")
    assert latin.stdout.splitlines()[:3:2] == [
        "+ GardenerCluster kcp-system/one  Ready: Fine.",
        "|  `- + Cluster one  answers to this kubeconfig",
    ]


def test_an_argument_that_is_no_text_is_one_line(fleet: Fleet) -> None:
    shown = shell(f"hortus tree $'\\xff' --state-dir {fleet.folder}")
    assert (shown.returncode, shown.stdout, shown.stderr) == (2, "", "error: '\\udcff' is not text in UTF-8\n")


@pytest.mark.parametrize(
    ("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"NO_COLOR": ""}, True), ({"TERM": "dumb"}, False)]
)
def test_colours_are_for_terminals_that_show_them(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], coloured: bool
) -> None:
    here = ("--state-dir", str(fleet.folder))
    for name, value in {"TERM": "xterm", **more}.items():
        monkeypatch.setenv(name, value)
    if "NO_COLOR" not in more:
        monkeypatch.delenv("NO_COLOR", raising=False)
    for words in (("tree", "two"), ("tree", "nothing"), ("get", "clusters", "-o", "nonsense")):
        code, shown = shown_in_terminal(*words, *here)
        assert code in (1, 2)
        assert (RED in shown) is coloured, (words, shown)
        assert coloured or b"\x1b" not in shown


def test_a_terminal_has_colours_and_a_pipe_has_none(fleet: Fleet) -> None:
    words = ("tree", "two", "--state-dir", str(fleet.folder))
    with terminal(*words) as shown:
        assert shown.ended() == 1
        assert RED in shown.raw
    assert "\x1b" not in shell(f"hortus {' '.join(words)}").stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("tree", "one", "-o", "name"), "'name' is not a format of this command: table, json or yaml"),
        (("tree", "one", "-o", "wide"), "'wide' is not a format of this command: table, json or yaml"),
        (("status", "-o", "jsonpath={.a}"), "'jsonpath={.a}' is not a format of this command: table, json or yaml"),
        (("install", "--export", "-o", "table"), "'table' is not a format of this command: yaml or json"),
        (("get", "clusters", "-o", "json=x"), "'json=x' is not a format of this command"),
        (("get", "clusters", "-o", "jsonpath"), "jsonpath needs an argument: -o jsonpath=TEMPLATE"),
        (("rotate", "one", "--timeout", "3 minutes"), "'3 minutes' is not a duration such as 30s or 1h30m"),
        (("rotate", "one", "--timeout", "inf"), "'inf' is not a duration such as 30s or 1h30m"),
        (("rotate", "one", "--timeout", "1ms"), "'1ms' is less than 100ms"),
        (("up", "--clusters", "many"), "'many' is not a whole number, 0 to 20000"),
        (("up", "--port", "70000"), "'70000' is not a whole number, 0 to 65535"),
        (("simulate", "load", "--seed", "-1"), "'-1' is not a whole number, 0 or more"),
        (("tree",), "Missing argument 'NAME'."),
    ],
)
def test_a_wrong_value_is_refused_in_the_users_words_with_a_hint(
    fleet: Fleet, words: tuple[str, ...], says: str
) -> None:
    answer = fleet.type(*words)
    error, hint = answer.err.splitlines()
    assert (answer.code, answer.out) == (2, "")
    assert error.startswith("error: ") and says in error
    command = [word for word in words if not word.startswith("-")][: 2 if words[0] == "simulate" else 1]
    assert hint == f"See `app {' '.join(command)} --help`."


@pytest.mark.parametrize("timeout", ["1m", "90s", "0h1m30s", "60", "1.5"])
def test_a_timeout_is_a_duration_and_a_number_is_seconds(fleet: Fleet, timeout: str) -> None:
    assert fleet.type("rotate", "three", "--timeout", timeout).code == 1


def test_every_command_says_its_formats_in_its_help(fleet: Fleet) -> None:
    """And no help is wider than the terminal, but for examples that are typed as they are.

    A command whose output is a file, a folder, a picture or a form has no formats.
    """
    for path, options, examples in _commands(app):
        for width in (60, 80):
            shown = _help(path, width)
            assert shown.exit_code == 0, shown.stderr
            wide = [line.strip() for line in shown.stdout.splitlines() if len(line) > width]
            assert all(width < 80 and line in examples for line in wide), (path, wide)
        if "output" in options and not re.search(r"--output (FILE|DIR|PICTURE|FORM)\b", shown.stdout):
            assert "-o, --output FORMAT" in shown.stdout and "json" in shown.stdout, path


def test_a_help_in_a_process_of_its_own_is_as_wide_as_its_terminal() -> None:
    for command, width in (("rotate", 60), ("run", 80)):
        typed = shell(f"hortus {command} --help", COLUMNS=str(width))
        assert (typed.returncode, typed.stdout) == (0, _help([command], width).stdout)


def _help(path: list[str], width: int) -> Result:
    """The help in this process. Click's margin is two columns; its runner knows no terminal."""
    runner = CliRunner(env={"COLUMNS": str(width)})
    return runner.invoke(app, [*path, "--help"], prog_name="hortus", terminal_width=width - 2)


def _commands(group, path=()):
    for name, command in group.commands.items():
        examples = [line.strip() for part in (command.help or "").split("\b\n")[1:] for line in part.splitlines()]
        yield [*path, name], {parameter.name for parameter in command.params}, examples
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))


BEFORE_ITS_FIRST_AWAIT = """
import os, signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
from hortus.terminal import CommandError, CommandGroup, run
app = CommandGroup()
async def work():
    os.kill(os.getpid(), signal.SIGINT)
    {end}
@app.command()
def command():
    {before}
    run(work())
    {after}
app.main(["command"])
"""
INTERRUPT = "os.kill(os.getpid(), signal.SIGINT)"


@pytest.mark.parametrize(
    "places",
    [
        {"end": "raise CommandError('failed')"},
        {"end": "raise SystemExit(1)"},
        {"end": "raise OSError(28, 'full')"},
        {"end": "import asyncio; await asyncio.sleep(60)"},
        {"before": INTERRUPT},
        {"before": f"try: {INTERRUPT}\n    finally: print('x')"},
        {"end": "return", "after": INTERRUPT},
    ],
)
def test_ctrl_c_ends_a_command_with_130_and_silently_at_any_moment(places: dict[str, str]) -> None:
    source = BEFORE_ITS_FIRST_AWAIT.format(**{"end": "pass", "before": "pass", "after": "pass", **places})
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip("x\n"), done.stderr) == (128 + signal.SIGINT, "", "")


AT_EXIT = """
import atexit, os, signal, sys
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
sys.argv[1:] = ["version"]
from hortus.cli.main import main
main()
"""


def test_ctrl_c_among_the_last_steps_is_silent() -> None:
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (130, "hortus 0.1.0\n", "")


def test_a_question_is_asked_on_a_terminal_and_refused_elsewhere(fleet: Fleet) -> None:
    words = ("uninstall", "--garden-account", "demo", "--state-dir", str(fleet.folder))
    for keys, code, says in (("\n", 1, "error: nothing was changed"), ("\x03", 130, "[y/N] ^C")):
        with terminal(*words) as shown:
            shown.shows("[y/N]")
            shown.type(keys)
            assert shown.ended() == code
            assert says in shown.lines[-1]
    refused = typed(*words)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith("error: Delete Hortus' account in project demo of 127.0.0.1:")
    assert refused.stderr.endswith("? Nobody can answer, as this is no terminal: give -y to agree\n")


def test_a_taken_port_is_one_line_that_names_the_flag(fleet: Fleet) -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = f"127.0.0.1:{holder.getsockname()[1]}"
        words = ["run", f"--kubeconfig={fleet.folder / 'kubeconfig'}", "--leader-elect=false"]
        words += [f"--gardener-kubeconfig-path={fleet.folder / 'garden.kubeconfig'}", "--gardener-project-name=demo"]
        words += [f"--metrics-bind-address={taken}", "--health-probe-bind-address=0", "--watch-namespace=elsewhere"]
        done = subprocess.run(program(*words), capture_output=True, text=True, env=environment(), timeout=60)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1] == (
        f"error: cannot listen on {taken}: Address already in use; choose another address "
        "(--metrics-bind-address, --health-probe-bind-address, --debug-bind-address)"
    )


def test_a_long_output_is_whole_where_python_writes_without_a_buffer() -> None:
    """A signal amid a write to a pipe that is full makes it a part of one."""
    code = (
        "import os, signal\n"
        "signal.signal(signal.SIGALRM, lambda *_: os.write(2, b'rung\\n'))\n"
        "from hortus.cli.main import _prepare_streams\n"
        "_prepare_streams()\n"
        "signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)\n"
        "print('x' * 300_000)\n"
        "signal.setitimer(signal.ITIMER_REAL, 0)\n"
    )
    words = [sys.executable, "-u", "-c", code]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        for _ in range(3):
            assert program.stderr.readline() == b"rung\n"
        assert len(program.stdout.read()) == 300_001
