"""The API server of `hortus up`: management cluster, garden, and a logical cluster for each workload cluster."""

from __future__ import annotations

import errno
import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import structlog

from hortus.apiserver import ApiServer, ApiServerSettings, AuditSettings, Local, open_server
from hortus.apiserver.audit import PolicyError
from hortus.apiserver.authn import UserInfo
from hortus.apiserver.authz import Attributes
from hortus.apiserver.clusters import certificate_kubeconfig, token_kubeconfig
from hortus.apiserver.store import SqliteBackend, StoreFailed
from hortus.cli.up.state import StateDirectory, write_private
from hortus.cli.up.store import backend_of, server_settings
from hortus.cli.up.supervisor import CannotRun, report, until_stopped
from hortus.domains import all_domains
from hortus.engine.rbac import policy_rules
from hortus.kube import yaml
from hortus.kube.clock import SystemClock
from hortus.kube.errors import AlreadyExists
from hortus.kube.kubeconfig import KubeconfigError, merged
from hortus.kube.objects import Object, Resource
from hortus.schema import crd
from hortus.simulation.disruption import Disruption, SteppedClock
from hortus.simulation.faults import Faults
from hortus.simulation.garden.admission import ShootAdmission
from hortus.simulation.garden.definitions import definitions
from hortus.simulation.garden.hibernation import Hibernation
from hortus.simulation.garden.issuing import ClusterIssuer
from hortus.simulation.garden.kinds import LOGICAL_CLUSTERS
from hortus.simulation.garden.kubeconfigs import Kubeconfigs
from hortus.simulation.garden.seed.kinds import SEED_CLUSTER, SPARE_FOLDER, SPARE_PREFIX
from hortus.simulation.guard import MANAGER, marked
from hortus.simulation.podpages import SimulatedPages
from hortus.simulation.settings import GardenSettings, SettingsError, from_config

GARDEN = "garden"
"""The logical cluster that is the simulated garden."""
ADMIN_SECONDS = 365 * 24 * 3600
"""Life of the administrators' certificates; each start writes new ones."""

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

_CRDS = Resource(
    "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False
)
_NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
_CLUSTER_ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
_POLICY_KINDS = {
    kind: Resource("admissionregistration.k8s.io", "v1", plural, kind, namespaced=False)
    for plural, kind in (
        ("validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
        ("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    )
}
_EVERYWHERE = "*"


async def serve(
    state: StateDirectory,
    *,
    port: int,
    ephemeral: bool,
    config: dict[str, Any],
    audit_policy: Path | None = None,
    store: str = "",
) -> None:
    """Serve until cancelled. Raises CannotRun."""
    audit = AuditSettings(audit_policy, state.logs / "audit.log") if audit_policy else None
    chosen = server_settings(config, store=store)
    backend = backend_of(chosen, state, ephemeral=ephemeral)
    garden = _garden_settings(config)
    spares = [f"{SPARE_PREFIX}{number}" for number in range(1, garden.spare_seeds + 1)]
    settings = ApiServerSettings(
        port=port,
        audit=audit,
        event_ttl=chosen.event_ttl,
        limits=chosen.limits,
        local_webhooks=frozenset({GARDEN, SEED_CLUSTER, *spares, *chosen.local_webhooks}),
    )
    token = _simulation_token(state)
    simulation = UserInfo("system:simulation", groups=("system:masters",))
    clock = SteppedClock(SystemClock())
    admission = ShootAdmission(GARDEN, garden, clock)
    tokens = {(_EVERYWHERE, token): simulation}
    try:
        server = await open_server(settings, backend, tokens=tokens, admission=[admission], clock=clock)
    except (StoreFailed, PolicyError) as error:
        raise CannotRun(str(error)) from None
    except OSError as error:
        raise CannotRun(_no_start(error, port)) from None
    if isinstance(backend, SqliteBackend):
        state.note_database()
    admission.read_from(server.context.storage)
    _add_garden(server, garden, admission, clock)
    hibernation = Hibernation(server, GARDEN, Disruption(clock))
    server.intercept(hibernation)
    server.reach_pods(SimulatedPages())
    server.add_part(hibernation)
    try:
        await server.start()
    except OSError as error:
        raise CannotRun(_no_start(error, port)) from None
    try:
        await _prepare(server, spares)
        await _allow_simulations(server)
        _write_kubeconfigs(state, server, token, garden.project, spares)
        report("ready", f"{server.url}", server=server.url)
        await until_stopped()
    finally:
        await server.stop()


def _no_start(error: OSError, port: int) -> str:
    if error.errno in (errno.EADDRINUSE, errno.EADDRNOTAVAIL, errno.EACCES) and not error.filename:
        return f"port {port} on 127.0.0.1: {error.strerror}; choose another with --port N"
    return f"the API server cannot start: {error}"


def _garden_settings(config: dict[str, Any]) -> GardenSettings:
    try:
        return from_config(config)
    except SettingsError as error:
        raise CannotRun(str(error)) from None


def _add_garden(server: ApiServer, settings: GardenSettings, admission: ShootAdmission, clock: SteppedClock) -> None:
    async def allowed(user: UserInfo, verb: str, group: str, resource: str) -> bool:
        asked = Attributes(GARDEN, user, verb, group=group, resource=resource)
        return (await server.authorizer.authorize(asked)).allowed

    kubeconfigs = Kubeconfigs(ClusterIssuer(server.clusters), allowed, Faults(settings.faults), settings, clock)
    server.extend(GARDEN, definitions(kubeconfigs.handlers(), mutate=admission.mutate))


async def _prepare(server: ApiServer, spares: Sequence[str]) -> None:
    """Create what the management cluster holds from the beginning: the garden, our CRDs, policies and roles."""
    local = server.local("root")
    for name in (GARDEN, SEED_CLUSTER, *spares):
        await _ensure(local, LOGICAL_CLUSTERS, _named(LOGICAL_CLUSTERS, name))
    for kind in (kind for domain in all_domains() for kind in domain.kinds().values()):
        await local.apply(_CRDS, crd(kind))
    for policy in (policy for domain in all_domains() for policy in domain.admission_policies()):
        await local.apply(_POLICY_KINDS[policy["kind"]], policy)
    for name, found in (role for domain in all_domains() for role in domain.people().items()):
        role = {"metadata": {"name": f"hortus-{name}"}, "rules": policy_rules(found)}
        await local.apply(_CLUSTER_ROLES, role)


async def _ensure(local: Local, resource: Resource, obj: Object) -> None:
    try:
        await local.create(resource, obj)
    except AlreadyExists:
        return


async def _allow_simulations(server: ApiServer) -> None:
    for cluster in ("root", GARDEN):
        await server.local(cluster, manager=MANAGER).apply(_NAMESPACES, marked())


def _named(resource: Resource, name: str) -> Object:
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"name": name}}


def _write_kubeconfigs(
    state: StateDirectory, server: ApiServer, token: str, project: str, spares: Sequence[str]
) -> None:
    def admin(cluster: str, url: str, name: str) -> Object:
        issued = server.clusters.issue(
            cluster, username="kubernetes-admin", groups=("system:masters",), seconds=ADMIN_SECONDS
        )
        return certificate_kubeconfig(issued, server=url, name=name)

    management = admin("root", server.url, "hortus")
    garden = admin(GARDEN, f"{server.url}/clusters/{GARDEN}", GARDEN)
    garden["contexts"][0]["context"]["namespace"] = f"garden-{project}"
    _refresh(state.kubeconfig, with_others(state.kubeconfig, management))
    _refresh(state.controllers_kubeconfig, management)
    _refresh(state.garden_kubeconfig, garden)
    seed = admin(SEED_CLUSTER, f"{server.url}/clusters/{SEED_CLUSTER}", SEED_CLUSTER)
    _refresh(state.seed_kubeconfig, seed)
    folder = state.path / SPARE_FOLDER
    folder.mkdir(mode=0o700, exist_ok=True)
    for name in spares:
        _refresh(folder / f"{name}.kubeconfig", admin(name, f"{server.url}/clusters/{name}", name))
    document = token_kubeconfig(token, ca=server.clusters.server_ca, server=server.url, name="hortus")
    _refresh(state.simulation_kubeconfig, document)


def with_others(path: Path, kubeconfig: Object) -> Object:
    """The kubeconfig with the entries that people added to its file, such as the contexts of clusters.

    A context that they chose stays the current one. A file that cannot be read contributes nothing.
    """
    try:
        found = merged(path, kubeconfig, use=False)
    except (KubeconfigError, OSError):
        return kubeconfig
    return {**found, "current-context": found.get("current-context") or kubeconfig["current-context"]}


def _refresh(path: Path, kubeconfig: Object) -> None:
    """Write a kubeconfig. On a full disk the one that is there will do: without a server nobody could make room."""
    try:
        write_private(path, yaml.dump(kubeconfig).encode())
    except OSError as error:
        if not path.exists():
            raise
        _log.error("a kubeconfig could not be renewed", path=str(path), error=str(error))


def _simulation_token(state: StateDirectory) -> str:
    """The same over restarts of this process alone, so that the simulation stays logged in."""
    if not state.token.exists():
        write_private(state.token, secrets.token_urlsafe(32).encode())
    return state.token.read_text().strip()
