"""The value of a flag: from the command line, else the environment, else a file, else its default.

One name per setting in all of them: `--watch-namespace=x`, `HORTUS_WATCH_NAMESPACE=x`, `watch-namespace: x`. The file
is YAML or JSON and may change while the process runs: what its flags allow is taken over at once, the rest is named in
the log and waits for a restart. A file that became wrong changes nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Gauge

from hortus.engine.files import FileWatch
from hortus.engine.flags import Flag, FlagError, FlagSet
from hortus.kube import durations, yaml
from hortus.kube.clock import Clock

CONFIG = Flag(
    "config", "string", "", "File with values for these flags, by name, as YAML or JSON; watched for changes."
)
PREFIX = "HORTUS_"
"""The prefix of environment variables."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

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


class Reloader:
    """Takes over what changed in the configuration's file. For `Manager.add(…, leader_only=False)`.

    `apply` gets all values, of which only those of flags that are `reloadable` differ from the ones before. It raises
    FlagError for values that do not go together, and then has changed nothing.
    """

    def __init__(
        self,
        configuration: FlagValues,
        flags: FlagSet,
        values: Mapping[str, Any],
        apply: Callable[[Mapping[str, Any]], None],
        *,
        registry: CollectorRegistry,
        clock: Clock,
    ) -> None:
        self._configuration = configuration
        self._flags = flags
        self._values = dict(values)
        self._apply = apply
        self._clock = clock
        self._successful = Gauge(
            "hortus_config_last_reload_successful",
            "Whether the configuration's last reload succeeded.",
            registry=registry,
        )
        self._at = Gauge(
            "hortus_config_last_reload_success_timestamp_seconds",
            "When the configuration was read without an error for the last time.",
            registry=registry,
        )
        self._report(well=True)

    async def run(self) -> None:
        """Follow the file until cancelled."""
        assert self._configuration.path is not None, "there is a file to follow"
        await FileWatch(self._configuration.path, self.reload).run()

    def reload(self) -> None:
        """Read all values again and take over what can be."""
        try:
            found = self._configuration.load()
            changed = {name for name, value in found.items() if value != self._values[name]}
            now = {name for name in changed if self._flags.flags[name].reloadable}
            values = {**self._values, **{name: found[name] for name in now}}
            if now:
                self._apply(values)
        except FlagError as error:
            _log.error("the configuration is wrong, keeping the one before", error=str(error))
            self._report(well=False)
            return
        self._values = values
        self._report(well=True)
        if now:
            _log.info("took over the configuration", flags=sorted(now))
        if later := changed - now:
            _log.warning("these flags take effect at the next start", flags=sorted(later))

    def _report(self, *, well: bool) -> None:
        self._successful.set(float(well))
        if well:
            self._at.set(self._clock.now())


__all__ = ["CONFIG", "PREFIX", "FlagValues", "Reloader"]
