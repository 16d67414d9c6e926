"""The value of a flag: from the command line, else the environment, else a file, else its default.

One name per setting in all of them: `--watch-namespace=x`, `HORTUS_WATCH_NAMESPACE=x`, `watch-namespace: x`. The file
is YAML or JSON and may change while the process runs (`reloading`).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hortus.engine.flags import FlagError, FlagSet
from hortus.engine.hostflags import CONFIG
from hortus.kube import durations, yaml

PREFIX = "HORTUS_"
"""The prefix of environment variables."""

_TYPES: Mapping[str, tuple[type, ...]] = {"string": (str,), "bool": (bool,), "int": (int,), "float": (int, float)}


class FlagValues:
    """The values of one program's flags, from all places."""

    def __init__(self, flags: FlagSet, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
        self._flags = flags
        self._arguments = arguments
        self._environment = environment
        self.path: Path | None = None
        """The file, once `load` has found that there is one."""

    def load(self) -> dict[str, Any]:
        """Every flag's value as things stand now. Raises FlagError that names the place, the flag and the value."""
        below = self._from_environment()
        named = self._flags.parse(self._arguments, below=below)[CONFIG.name]
        if not named:
            return self._flags.parse(self._arguments, below=below)
        self.path = Path(named)
        return self._flags.parse(self._arguments, below={**self._from_file(self.path), **below})

    def _from_environment(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, flag in self._flags.flags.items():
            variable = PREFIX + name.upper().replace("-", "_")
            text = self._environment.get(variable)
            if text is not None:
                try:
                    found[name] = flag.read(text)
                except FlagError as error:
                    raise FlagError(f"{variable}: {error}") from None
        return found

    def _from_file(self, path: Path) -> dict[str, Any]:
        try:
            document = yaml.load(path.read_bytes())
        except OSError as error:
            raise FlagError(f"--config {path}: cannot be read: {error.strerror}") from None
        except yaml.YamlError as error:
            raise FlagError(f"--config {path}: {error}") from None
        if document is None:
            return {}
        if not isinstance(document, dict):
            raise FlagError(f"--config {path}: must be a mapping from the names of flags to values")
        return {str(name): self._value(path, str(name), value) for name, value in document.items()}

    def _value(self, path: Path, name: str, value: object) -> object:
        flag = self._flags.flags.get(name)
        if flag is None or flag is CONFIG:
            near = difflib.get_close_matches(name, self._flags.flags, n=1)
            hint = f"; did you mean {near[0]}?" if near else "; see --help"
            raise FlagError(f"--config {path}: {name} is not the name of a flag{hint}")
        if flag.kind == "duration" and isinstance(value, str):
            try:
                return durations.seconds(value)
            except ValueError as error:
                raise FlagError(f"--config {path}: {name}: {error}") from None
        fits = _TYPES.get(flag.kind, ())
        if not isinstance(value, fits) or (isinstance(value, bool) and flag.kind != "bool"):
            wanted = "a duration such as 1h30m" if flag.kind == "duration" else f"a value of type {flag.kind}"
            raise FlagError(f"--config {path}: {name} is {value!r}, must be {wanted}")
        return float(value) if flag.kind == "float" else value  # type: ignore[arg-type]


__all__ = ["PREFIX", "FlagValues"]
