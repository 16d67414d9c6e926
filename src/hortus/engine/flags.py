"""Command-line flags with the names and habits of the Go systems, so that their Deployments' arguments keep working.

Go's flag package takes one dash or two, `-name value` or `-name=value`, and for booleans `-name` or `-name=false`.
Each part of the program declares its flags as a tuple of `Flag`; the shell joins, parses and prints them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from hortus.kube import durations
from hortus.kube.numbers import boolean


class FlagError(Exception):
    """An argument that is not a flag we know, or whose value does not fit; the message names both."""


class Flag(msgspec.Struct, frozen=True):
    """One flag. `kind` says how its text is read; `default` is the value when it is absent."""

    name: str
    kind: str
    """`string`, `bool`, `int`, `float` or `duration` (seconds as float, written as Go writes them: 1h30m)."""
    default: Any
    help: str
    reloadable: bool = False
    """True when a running process can take another value; see `hortus.engine.configuration`."""

    def read(self, text: str) -> Any:
        """The value that `text` stands for. Raises FlagError."""
        try:
            return _READERS[self.kind](text)
        except (ValueError, OverflowError) as error:
            raise FlagError(f"invalid value {text!r} for flag --{self.name}: {error}") from None


def _bool(text: str) -> bool:
    found = boolean(text)
    if found is None:
        raise ValueError("must be true or false")
    return found


_READERS: Mapping[str, Callable[[str], Any]] = {
    "string": str,
    "bool": _bool,
    "int": int,
    "float": float,
    "duration": durations.seconds,
}


class FlagSet:
    """The flags of one program."""

    def __init__(self, flags: Iterable[Flag]) -> None:
        self.flags = {flag.name: flag for flag in flags}

    def parse(self, arguments: Sequence[str], *, below: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Values by flag name; where absent those of `below`, else defaults. The last one counts. Raises FlagError."""
        values = {name: flag.default for name, flag in self.flags.items()} | dict(below or {})
        rest = list(arguments)
        while rest:
            word = rest.pop(0)
            if word == "--" and not rest:
                break
            name, separator, text = _split(word)
            flag = self.flags.get(name)
            if flag is None:
                raise FlagError(f"flag provided but not defined: {word.partition('=')[0]}; see --help")
            if not separator:
                if flag.kind == "bool":
                    text = "true"
                elif rest:
                    text = rest.pop(0)
                else:
                    raise FlagError(f"flag needs an argument: --{name}")
            values[name] = flag.read(text)
        return values

    def usage(self) -> str:
        """One line a flag, sorted by name."""
        lines = []
        for name in sorted(self.flags):
            flag = self.flags[name]
            kind = "" if flag.kind == "bool" else f" {flag.kind}"
            lines.append(f"  --{name}{kind}\n        {flag.help} (default {_shown(flag) or 'empty'})")
        return "\n".join(lines)


def _shown(flag: Flag) -> str:
    if flag.kind == "duration":
        return durations.from_seconds(flag.default)
    return str(flag.default).lower() if flag.kind == "bool" else str(flag.default)


def _split(word: str) -> tuple[str, str, str]:
    if not word.startswith("-") or word in ("-", "--"):
        raise FlagError(f"unexpected argument {word!r}; flags begin with a dash")
    return word.lstrip("-").partition("=")


__all__ = ["Flag", "FlagError", "FlagSet"]
