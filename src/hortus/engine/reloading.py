"""Takes over changes of the configuration file while the process runs.

What the flags allow is taken over at once; the rest is named in the log and waits for a restart. A file that became
wrong changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Gauge

from hortus.engine.configuration import FlagValues
from hortus.engine.files import FileWatch
from hortus.engine.flags import FlagError, FlagSet
from hortus.kube.clock import Clock

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


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
