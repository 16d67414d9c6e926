"""Domains: one folder for each, and one descriptor through which the rest of the program knows it.

`hortus run`, `up`, `install`, the chart, the generated pages and the command line iterate over `all_domains()`. A
package in this folder is found by its name and exports its descriptor as `DOMAIN`; no other file names it. The methods
of a descriptor import what they return, so that a process loads only the parts it uses: `hortus --help` no
controllers, `hortus run` no commands.

Domains meet through API objects: a domain imports of another only its `types`.
"""

from __future__ import annotations

import pkgutil
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from hortus.engine import Cache, Manager
    from hortus.engine.deputies import Deputies
    from hortus.engine.flags import Flag
    from hortus.engine.fleet import FleetView, WideColumns
    from hortus.engine.leftovers import LeftoverRecorder
    from hortus.engine.observing import Alert, Board
    from hortus.engine.pages import ClusterPart, FleetPage
    from hortus.engine.powers import Power
    from hortus.engine.rbac import Permission
    from hortus.engine.remote import RemotePool
    from hortus.engine.rollouts import RolloutGate
    from hortus.engine.rollouts.types import ChangeKind
    from hortus.engine.serving import AdmissionWebhooks
    from hortus.kube import Client
    from hortus.kube.objects import Object, Resource
    from hortus.schema import Kind
    from hortus.terminal import CommandGroup, Connections

_PORTS, _PORT_ATTEMPTS = 20_000, 100
"""Ports to choose from, and attempts before the choice is left to the kernel."""
_FIRST_PORT = 10_000
"""The lowest port that is chosen: those below are often those of well-known servers."""

Reload = Callable[[Mapping[str, Any]], None]
"""Takes over changed values of flags, which every domain has checked."""


class NamespaceRules(NamedTuple):
    """RBAC rules in a namespace of the management cluster that the operator names."""

    permissions: Sequence[Permission]
    namespace_flag: str
    """Name of the flag that gives the namespace; empty where it is always `namespace`."""
    flag: str
    """Name of the flag without which the rules are not granted."""
    namespace: str = ""
    """The namespace where no flag gives it."""


class RbacRules(NamedTuple):
    """RBAC rules that the controllers of a domain need; the roles of the chart are made from them."""

    management: Sequence[Permission] = ()
    """On the management cluster, in the watched namespace."""
    fleet: Sequence[Permission] = ()
    """On the management cluster, in the fleet's namespace."""
    wide: Sequence[Permission] = ()
    """On the management cluster, in all namespaces, and for objects that have none. Without a `flag` they are granted
    where all namespaces are watched."""
    garden: Sequence[Permission] = ()
    """In the garden, in the namespace of the project."""
    garden_wide: Sequence[Permission] = ()
    """In the garden, in all namespaces."""
    elsewhere: Sequence[NamespaceRules] = ()
    """On the management cluster, in further namespaces."""
    flag: str = ""
    """Name of a flag without which the other rules on the management cluster are not granted; empty grants always."""


class ProcessContext(NamedTuple):
    """The process to which domains add their controllers."""

    manager: Manager
    values: Mapping[str, Any]
    """The values of all flags, by name."""
    served: frozenset[Resource]
    """Kinds with a CRD that controllers of this process reconcile."""
    client: Client
    """The management cluster."""
    namespace: str
    """The watched namespace of the management cluster; empty for all."""
    garden: Client
    garden_namespace: str
    """Namespace of the project in the garden."""
    shoots: Cache
    """The project's Shoots, each as the outlines of all domains together."""
    pool: RemotePool
    """Clients of all clusters."""
    kubeconfigs: Cache
    """The Secrets that `pool` reads, without their values."""
    deputies: Deputies
    """The permissions with which the objects of each namespace act."""
    gate: RolloutGate
    """To be asked before a cluster changes because of something that concerns many."""
    change_kinds: Sequence[ChangeKind]
    """The ChangeKinds of all domains whose kinds this process reconciles."""
    leftovers: LeftoverRecorder
    """To be called before something is released without being seen to be gone."""
    webhooks: AdmissionWebhooks
    """To be given the admission webhooks that the API server calls."""


class ValidatingWebhook(NamedTuple):
    """An admission webhook that the controllers of a domain serve, as the chart registers it."""

    name: str
    path: str
    rules: Sequence[Object]
    """The requests that the API server sends: RuleWithOperations of admissionregistration.k8s.io/v1."""
    review_versions: Sequence[str] = ("v1",)
    failure_policy: str = "Fail"
    namespace_flag: str = ""
    """Name of a flag that gives the namespace of the objects in place of --watch-namespace."""


class RivalLease(NamedTuple):
    """The Lease by which the operator that a domain replaces elects its leader, in whatever namespace.

    Hortus is not installed while that operator holds it, and holds it itself while it runs (`hortus.engine.rivals`).
    """

    name: str
    flags: Sequence[str]
    """The flags with all of which Hortus does the same work."""

    def concerns(self, values: Mapping[str, Any]) -> bool:
        """Reports whether a process with these values of flags does the work of that operator."""
        return all(values[flag] for flag in self.flags)


class LocalSetup(NamedTuple):
    """Flags and files with which a domain runs in `hortus up`, where everything around it is simulated."""

    flags: Sequence[str] = ()
    """Arguments of the controllers."""
    files: Mapping[Path, bytes] = MappingProxyType({})
    """Files to write before these start."""
    extensions: Sequence[str] = ()
    """Types of Gardener's extensions that the controllers reconcile: the simulated seed has Extensions of these."""


SEED_FILE = "seed.kubeconfig"
"""The simulated seed of `hortus up`, in its state directory."""
REGISTRY_FILE = "registry.json"
"""The registry of `hortus up`, in its state directory: a docker config with this one registry and who may push."""


def free_port() -> int:
    """A port of loopback that is free now, for a server of `hortus up` whose address others are given.

    It is below the range from which the kernel chooses where a program leaves the choice to it: an outgoing connection
    would otherwise take the port before the server listens, or while it is started again.
    """
    lowest = _lowest_chosen_by_kernel()
    for _ in range(_PORT_ATTEMPTS):
        if (port := lowest - 1 - secrets.randbelow(_PORTS)) < _FIRST_PORT:
            continue
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _lowest_chosen_by_kernel() -> int:
    try:
        return int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32768


class LocalArtifact(NamedTuple):
    """An OCI artifact in the registry of `hortus up`."""

    repository: str
    tag: str
    manifest: bytes
    media_type: str
    blobs: Sequence[bytes]
    """The manifest's config and layers."""


class DemoFleet(NamedTuple):
    """The demo clusters of `hortus up`. Domains find them by their names."""

    names: Sequence[str]
    secret_binding: str
    """The binding in the garden with the credentials for every provider."""


class Domain:
    """A descriptor. Every part is optional; the defaults contribute nothing.

    The docstring of the domain's package is its description, as `Name: its work.`: docs/architecture.md shows it.
    """

    def __init__(self, package: str) -> None:
        """`package` is the `__name__` of the domain's package."""
        self.name = package.rpartition(".")[2]
        """The folder's name; users see it in the names of alert groups."""
        self._package = package

    @property
    def needs_garden(self) -> bool:
        """True where the controllers read the garden: a process without one does not have them."""
        return False

    def kinds(self) -> Mapping[Resource, type[Kind]]:
        """Kinds with a CRD on the management cluster."""
        return {}

    def powers(self) -> Mapping[Resource, Power]:
        """The power that creating an object of each kind gives: POWERS of the domain's module `authors`."""
        if find_spec(f"{self._package}.authors") is None:
            return {}
        found: Mapping[Resource, Power] = import_module(f"{self._package}.authors").POWERS
        return found

    def change_kinds(self) -> Sequence[ChangeKind]:
        """The changes of many clusters for which the controllers ask the gate; kept by the rollouts domain."""
        return ()

    def people(self) -> Mapping[str, Sequence[Permission]]:
        """ClusterRoles for people, besides those who view and edit: the permissions by the role's name."""
        return {}

    def admission_policies(self) -> Sequence[Object]:
        """Admission policies with their bindings, installed with the CRDs."""
        return ()

    def webhooks(self) -> Sequence[ValidatingWebhook]:
        """Admission webhooks, registered by the chart where the kinds are served and its values ask for them."""
        return ()

    def records(self) -> Sequence[Resource]:
        """The kinds that controllers alone write; the role for people who edit leaves them out."""
        return ()

    def powerful(self) -> Sequence[Resource]:
        """The kinds whose objects act beyond their namespace: as root on nodes, on cluster-scoped objects, in members.

        They are in the role `operate`, which no role of Kubernetes includes, and not in the one that `edit` includes.
        """
        return ()

    def standards(self) -> Sequence[Resource]:
        """The kinds that are a standard of others: their CRD is left alone where another program has installed it."""
        return ()

    def rivals(self) -> Sequence[RivalLease]:
        """The Leases of other operators that must not work at the same time."""
        return ()

    def flags(self) -> Sequence[Flag]:
        """Flags of `hortus run`."""
        return ()

    def rules(self) -> RbacRules:
        """RBAC rules of the controllers."""
        return RbacRules()

    def check(self, values: Mapping[str, Any]) -> None:
        """Raises FlagError for a value that cannot be used; called before anything is connected or changed."""

    def served_by(self) -> str:
        """The name of the flag that has the domain's kinds reconciled once it is set; empty where they always are."""
        return ""

    def unserved_reason(self, values: Mapping[str, Any]) -> str:
        """The reason for which a process with these values of flags does not reconcile the domain's kinds.

        With the fix; empty where it reconciles them.
        """
        return ""

    def served(self, values: Mapping[str, Any]) -> bool:
        """Returns whether a process with these values of flags reconciles the domain's kinds."""
        return not self.unserved_reason(values)

    def kubeconfig_selector(self) -> str:
        """Label selector of the Secrets by which all domains connect to clusters; empty if the domain makes none."""
        return ""

    def shoot_outline(self, shoot: Object) -> Object:
        """Fields that the cache of Shoots keeps for this domain, next to those of the others."""
        return {}

    def add_controllers(self, process: ProcessContext) -> Reload | None:
        """Add the controllers that the flags ask for. Raises FlagError.

        Returns the hook for changed values of flags that are reloadable.
        """
        return None

    def add_commands(self, app: CommandGroup, connect: Callable[[], Connections]) -> None:
        """Add the domain's commands to `app`. `connect` returns the clusters that the options name."""

    def fleet_views(self) -> Sequence[FleetView[Any]]:
        """The rows of the domain's objects in `hortus top` and `hortus problems`."""
        return ()

    def pages(self) -> Sequence[FleetPage]:
        """The domain's pages of the dashboard."""
        return ()

    def cluster_parts(self) -> Sequence[ClusterPart]:
        """The domain's parts in the dashboard's page of a cluster."""
        return ()

    def wide_columns(self) -> Mapping[Resource, WideColumns]:
        """Facts about objects of the domain's kinds that `hortus get -o wide` shows."""
        return {}

    def aliases(self) -> Mapping[str, str]:
        """Further names of kinds for `hortus get`, each with the plural that it stands for."""
        return {}

    def local_setup(self, folder: Path, project: str) -> LocalSetup:
        """Flags and files of the controllers in `hortus up`: files in `folder`, for `project` of the garden."""
        return LocalSetup()

    def local_artifacts(self, registry: str) -> Iterable[LocalArtifact]:
        """Artifacts that the registry of `hortus up`, at the address `registry`, holds at each start."""
        return ()

    def demo(self, fleet: DemoFleet) -> Iterable[tuple[Resource, Object]]:
        """Objects that `hortus up` creates on the management cluster, at each start, unless they exist.

        Those without a namespace are created first. The start waits until the others are Ready where they have a state
        or a condition Ready.
        """
        return ()

    def alerts(self) -> Sequence[Alert]:
        """The alerts of `alerts.yaml` in the domain's folder, where there is one."""
        from hortus.engine.observing import read_alerts

        return read_alerts(self._folder / "alerts.yaml")

    def boards(self) -> Sequence[Board]:
        """The dashboards of `boards.yaml` in the domain's folder, where there is one."""
        from hortus.engine.observing import read_boards

        return read_boards(self._folder / "boards.yaml")

    @property
    def _folder(self) -> Path:
        return Path(str(import_module(self._package).__file__)).parent


def all_domains() -> tuple[Domain, ...]:
    """The descriptors of all packages in this folder, by name."""
    names = sorted(found.name for found in pkgutil.iter_modules(__path__) if found.ispkg)
    return tuple(import_module(f"{__name__}.{name}").DOMAIN for name in names)


__all__ = [
    "REGISTRY_FILE",
    "SEED_FILE",
    "DemoFleet",
    "Domain",
    "LocalArtifact",
    "LocalSetup",
    "NamespaceRules",
    "ProcessContext",
    "RbacRules",
    "Reload",
    "RivalLease",
    "ValidatingWebhook",
    "all_domains",
    "free_port",
]
