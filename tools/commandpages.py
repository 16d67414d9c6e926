"""The reference of all commands as Markdown: one heading for each, one row for each option.

Options that all commands of a group take alike stand once, under the group.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping, Sequence

import click

from hortus.cli.flags import FLAGS
from hortus.cli.shell import app
from hortus.kube import durations

FURTHER: Mapping[str, str] = {
    "up": "operating-up.md",
    "simulate": "simulate.md",
    "adopt": "clusters/adoption.md",
    "canary": "canary.md",
    "install": "production.md",
    "check": "production.md",
    "envtest": "envtest.md",
    "new": "own-operator.md",
    "rollout": "rollouts.md",
}
"""The page about a command, where there is one."""
_WITHOUT_ROWS = ("help",)
"""Options that every command has."""


def reference() -> str:
    """The page's generated part: an overview, the root's options, then every command."""
    return "\n".join(_overview()) + "".join(_described(["hortus"], app, inherited=()))


def _overview() -> Iterator[str]:
    panels: dict[str, list[str]] = {}
    for name, command in app.commands.items():
        if command.hidden:
            continue
        panels.setdefault(getattr(command, "panel", "Commands"), []).append(f"[{name}](#hortus-{name})")
    for panel, names in panels.items():
        yield f"- **{panel}**: {', '.join(names)}"
    yield ""


def _described(path: list[str], command: click.Command, *, inherited: Sequence[str]) -> Iterator[str]:
    name = " ".join(path)
    yield f"\n## {name}\n\n{_text(command)}"
    if (page := FURTHER.get(path[1] if len(path) == 2 else "")) is not None:
        yield f"\nMore: [{page}]({page}).\n"
    common = _common(command) if isinstance(command, click.Group) and len(path) > 1 else []
    yield from _usage(path, command)
    rows = [row for row in (*_arguments(command), *_options(command), *common) if row[0] not in inherited]
    if path[1:] == ["run"]:
        rows += _flags()
    if common:
        yield "\nAll its commands take these options:\n"
    if rows:
        yield "\n| | |\n| --- | --- |\n"
        yield from (f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)
    if isinstance(command, click.Group):
        for sub in (one for one in command.commands.values() if not one.hidden):
            yield from _described([*path, str(sub.name)], sub, inherited=[first for first, _ in common])


def _usage(path: list[str], command: click.Command) -> Iterator[str]:
    context = click.Context(command, info_name=" ".join(path))
    words = " ".join(word for word in command.collect_usage_pieces(context) if word != "[OPTIONS]")
    if words:
        yield f"\n    {' '.join(path)} {words}\n"


def _text(command: click.Command) -> str:
    """The paragraphs of the help; those that keep their lines become blocks of code."""
    paragraphs = inspect.cleandoc(command.help or "").partition("\f")[0].split("\n\n")
    return "\n\n".join(_paragraph(one) for one in paragraphs) + "\n"


def _paragraph(text: str) -> str:
    if text.startswith("\b\n"):
        return "\n".join(f"    {line}" for line in text.splitlines()[1:])
    return " ".join(text.split())


def _arguments(command: click.Command) -> Iterator[tuple[str, str]]:
    for one in command.params:
        if isinstance(one, click.Argument):
            yield f"`{one.make_metavar(click.Context(command))}`", getattr(one, "help", "") or ""


def _options(command: click.Command) -> Iterator[tuple[str, str]]:
    context = click.Context(command)
    for one in command.params:
        if isinstance(one, click.Option) and not one.hidden and one.name not in _WITHOUT_ROWS:
            yield _option(one, context)


def _option(option: click.Option, context: click.Context) -> tuple[str, str]:
    names = sorted(option.opts, key=len)
    if not (option.is_flag or option.count):
        names[-1] += f" {option.make_metavar(context)}"
    extra = option.get_help_extra(context)
    default = extra.get("default", "")
    # click puts a default that is described in brackets.
    default = default[1:-1] if default.startswith("(") else f"`{default}`" if default else ""
    return ", ".join(f"`{name}`" for name in (*names, *option.secondary_opts)), _meaning(
        option.help or "", default, extra.get("range", "")
    )


def _meaning(text: str, default: str, limits: str = "") -> str:
    found = re.fullmatch(r"(\d+)<=x<=(\d+)", limits)
    parts = [f"default {default}" if default else "", f"{found[1]} to {found[2]}" if found else limits]
    facts = ", ".join(part for part in parts if part)
    text = " ".join(text.split())
    return f"{text} {facts[0].upper()}{facts[1:]}." if facts else text


def _common(group: click.Group) -> list[tuple[str, str]]:
    """The rows that all commands of the group have."""
    tables = [list(_options(command)) for command in group.commands.values()]
    if len(tables) < 2:
        return []
    return [row for row in tables[0] if all(row in rows for rows in tables[1:])]


def _flags() -> Iterator[tuple[str, str]]:
    for flag in FLAGS:
        value = durations.from_seconds(flag.default) if flag.kind == "duration" else str(flag.default)
        value = value.lower() if flag.kind == "bool" else value
        yield f"`--{flag.name} {flag.kind}`", _meaning(flag.help, f"`{value}`" if value else "")
