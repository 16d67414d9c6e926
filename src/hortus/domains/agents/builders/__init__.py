"""Objects of InstanaAgent and InstanaAgentRemote: pure functions from a CR with its defaults, and facts, to objects.

The objects are those of the Go operator, field by field, so that a swap of operators replaces no pod; where that one is
mistaken, `docs/agents/objects.md` says what differs and when. Callers read the facts and apply what is built:

    facts = InstanaFacts(operator_version=..., namespaces=..., persist_ids={name: persists_id(live)}, ...)
    for obj in build_agent(agent, facts): ...

- `build_agent`, `build_remote`: all objects in the order in which they are applied, without the dependents ConfigMap.
- `etcd_copies`: the copies of OpenShift's etcd credentials, which are applied besides; `is_copy`: what may be deleted.
- `persists_id`, `is_corrected`: what live workloads say about the template that replaces no pod.
- `service_of`, `targets_of`: etcd's metrics endpoints, out of Services, EndpointSlices and Endpoints of kube-system.
- `daemon_set_names`, `workload_name`: the names that those facts are for.
- `options_of`: options beyond the Go operator's, which say what further facts are needed.
- `missing_certificate`: the reason for which an issued certificate is not there; `issued_secret`: its Secret.
- `own_certificate_names`: the names in a certificate that we issue; `authority_secret`: the Secret with its authority.
- `cluster_names`, `reserved_name`: the names of ClusterRoles, and the reason for which they may not be used.
- `common_labels`, `owner_of`: metadata for further objects of an agent.
"""

from __future__ import annotations

from collections.abc import Iterable

from hortus.domains.agents.builders import additions, certificates, names, rbac, secrets, sensor, services
from hortus.domains.agents.builders import remote as remotes
from hortus.domains.agents.builders.certificates import missing as missing_certificate
from hortus.domains.agents.builders.certificates import own_names as own_certificate_names
from hortus.domains.agents.builders.configuration import namespace_labels
from hortus.domains.agents.builders.daemonset import daemon_set_names, daemon_sets
from hortus.domains.agents.builders.etcd import (
    EtcdEndpoints,
    EtcdService,
    EtcdSlice,
    etcd_copies,
    is_copy,
    service_of,
    targets_of,
)
from hortus.domains.agents.builders.facts import (
    CopiedSource,
    EtcdTargets,
    InstanaFacts,
    OpenShiftEtcd,
    UnknownWorkload,
    is_corrected,
    persists_id,
)
from hortus.domains.agents.builders.metadata import AGENT, common_labels, namespaced, owner_of
from hortus.domains.agents.builders.names import authority_secret, cluster_names, issued_secret, reserved_name
from hortus.domains.agents.options import UnusableOptions, options_of
from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.kube.objects import Object

__all__ = [
    "CopiedSource",
    "EtcdEndpoints",
    "EtcdService",
    "EtcdSlice",
    "EtcdTargets",
    "InstanaFacts",
    "OpenShiftEtcd",
    "UnknownWorkload",
    "UnusableOptions",
    "authority_secret",
    "build_agent",
    "build_remote",
    "cluster_names",
    "common_labels",
    "daemon_set_names",
    "etcd_copies",
    "is_copy",
    "is_corrected",
    "issued_secret",
    "missing_certificate",
    "options_of",
    "own_certificate_names",
    "owner_of",
    "persists_id",
    "reserved_name",
    "service_of",
    "targets_of",
    "workload_name",
]


def build_agent(agent: InstanaAgent, facts: InstanaFacts) -> tuple[Object, ...]:
    """The objects of an InstanaAgent with its defaults, in the order in which they are applied.

    Raises UnusableOptions.
    """
    facts = facts._replace(options=options_of(agent))
    return _present(
        [
            *daemon_sets(agent, facts),
            services.headless_service(agent, facts),
            secrets.config_secret(agent, facts),
            secrets.pull_secret(agent, facts),
            secrets.tls_secret(agent, facts),
            services.service(agent, facts),
            *rbac.agent_access(agent, facts),
            sensor.disruption_budget(agent, facts),
            *rbac.sensor_access(agent, facts),
            sensor.config_map(agent, facts),
            secrets.keys_secret(agent, facts),
            _namespaces_map(agent, facts),
            *sensor.deployments(agent, facts),
            additions.network_policy(agent, facts),
            certificates.certificate(agent, facts),
            *certificates.own_secrets(agent, facts),
        ]
    )


def build_remote(remote: InstanaAgentRemote, facts: InstanaFacts) -> tuple[Object, ...]:
    """The objects of an InstanaAgentRemote with its defaults, in the order in which they are applied.

    Raises UnusableOptions.
    """
    facts = facts._replace(options=options_of(remote))
    return _present(
        [
            remotes.deployment(remote, facts),
            secrets.config_secret(remote, facts),
            secrets.pull_secret(remote, facts),
            secrets.tls_secret(remote, facts),
            rbac.remote_account(remote, facts),
            secrets.keys_secret(remote, facts),
            certificates.certificate(remote, facts),
            *certificates.own_secrets(remote, facts),
        ]
    )


def workload_name(remote: InstanaAgentRemote) -> str:
    """Name of the Deployment of a Remote."""
    return names.base(remote)


def _present(objects: Iterable[Object | None]) -> tuple[Object, ...]:
    return tuple(obj for obj in objects if obj is not None)


def _namespaces_map(agent: InstanaAgent, facts: InstanaFacts) -> Object:
    """The ConfigMap by which agents know how the workloads of each namespace are monitored."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": namespaced(agent, names.namespaces_map(agent), common_labels(agent, AGENT, facts.operator_version)),
        "data": {"namespaces.yaml": namespace_labels(facts.namespaces)},
    }
