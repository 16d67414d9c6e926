"""The flags with which the controllers of a plan run: those of the controllers that run, but for what meets the world.

The fleet of `hortus up` keeps its flags in its state directory, an installation in its ConfigMap. A file of
`hortus run --config` takes their place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from hortus.cli.flags import FLAGS
from hortus.engine.configuration import FlagValues
from hortus.engine.flags import FlagError, FlagSet
from hortus.terminal import CommandError, Connections

_WITHOUT_WORLD: Final[Mapping[str, str]] = {
    "leader-elect": "false",
    "sharding": "false",
    "replicas": "1",
    "kubeconfig": "",
    "metrics-bind-address": "0",
    "health-probe-bind-address": "0",
    "debug-bind-address": "0",
    "tracing-endpoint": "",
    "garden-extensions": "",
    "garden-seed-kubeconfig": "",
    "allow-local-clusters": "true",
    "stacks-flux": "false",
    "modules-revalidation-interval": "8760h",
    "kyma-comparison-interval": "8760h",
    "module-comparison-interval": "8760h",
    "agents-resync": "8760h",
    "stacks-resync": "8760h",
    "watcher-probe-interval": "0s",
}
"""No servers, no leases, no files of clusters; addresses of clusters lead into the fork, whatever they are. What is
compared from time to time, to repair the changes of others, is compared once: there are no others in a fork."""
_SERVERS: Final = {"bind-address": "0", "webhook-url": "", "admission-url": "", "hook-url": ""}
"""By the ends of the names of flags that open ports or tell others where these are: the value that does neither."""


def plan_flags(connections: Connections, config: Path | None, garden: str) -> Mapping[str, Any]:
    """The values of all flags; `garden` names the project where no flag does. Raises CommandError."""
    flags = FlagSet(FLAGS)
    arguments = [*_found(connections, config)]
    known = {flag.name for flag in FLAGS}
    closed = [f"--{name}={_closed(name)}" for name in sorted(known) if name.endswith(tuple(_SERVERS))]
    closed += [f"--{name}={value}" for name, value in _WITHOUT_WORLD.items() if name in known]
    place = "garden.kubeconfig" if garden else ""
    project = [f"--gardener-project-name={garden.removeprefix('garden-')}"] if garden and config is None else []
    try:
        return FlagValues(flags, [*project, *arguments, *closed, f"--gardener-kubeconfig-path={place}"], {}).load()
    except FlagError as error:
        raise CommandError(f"the flags of the controllers: {error}; give --config FILE") from None


def _closed(name: str) -> str:
    return next(value for end, value in _SERVERS.items() if name.endswith(end))


def _found(connections: Connections, config: Path | None) -> Sequence[str]:
    from hortus.cli.up.state import FLAGS_FILE

    if config is not None:
        try:
            FlagValues(FlagSet(FLAGS), [f"--config={config}"], {}).load()
        except FlagError as error:
            raise CommandError(f"--config {config}: {error}", code=2) from None
        return [f"--config={config}"]
    file = connections.folder / FLAGS_FILE
    try:
        return msgspec.json.decode(file.read_bytes(), type=list[str])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.MsgspecError) as error:
        raise CommandError(f"{file}: {error}") from None
