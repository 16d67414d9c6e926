"""An API server accepts what is built, strictly, and holds it as it was sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from tests.domains.agents.builders.samples import FACTS, agent, remote

from hortus.domains.agents.builders import (
    CopiedSource,
    EtcdTargets,
    InstanaFacts,
    OpenShiftEtcd,
    build_agent,
    build_remote,
    etcd_copies,
)
from hortus.kube import Client, Discovery
from hortus.kube.objects import GroupVersionKind, Object
from hortus.schema.merge import owned_matches
from hortus.testing.apiserver import TestServer

MANAGER = "instana-agent-operator"
EVERYTHING: dict[str, Any] = {
    "key": "k",
    "mode": "APM",
    "downloadKey": "d",
    "additionalBackends": [{"endpointHost": "b.example", "endpointPort": "443", "key": "k2"}],
    "tls": {"certificate": "Y2VydA==", "key": "a2V5"},
    "image": {"name": "containers.instana.io/agent"},
    "proxyHost": "proxy",
    "proxyUser": "u",
    "proxyPassword": "p",
    "env": {"BACKEND": "mine", "EMPTY": "", "INSTANA_ZONE": "mine"},
    "host": {"repository": "/data"},
    "pod": {
        "annotations": {"a": "b"},
        "labels": {"c": "d"},
        "nodeSelector": {"e": "f"},
        "tolerations": [{"operator": "Exists"}],
        "priorityClassName": "high",
        "requests": {"cpu": "0.25", "ephemeral-storage": "1Gi"},
        "limits": {"memory": "2048Mi"},
        "env": [{"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
        "volumes": [{"name": "mine", "emptyDir": {}}],
        "volumeMounts": [{"name": "mine", "mountPath": "/mine"}],
    },
}
OPENSHIFT = OpenShiftEtcd(
    CopiedSource("1", {"ca-bundle.crt": "pem"}), CopiedSource("2", {"tls.crt": "Yw==", "tls.key": "aw=="}, "Opaque")
)
ETCD_CA = {"etcd": {"ca": {"secretName": "ca"}}, "restClient": {"ca": {"secretName": "r", "mountPath": "/r"}}}
SETS: dict[str, Sequence[Object]] = {
    "minimal": build_agent(agent(), FACTS),
    "everything": build_agent(
        agent({"k8s_sensor": {"podDisruptionBudget": {"enabled": True}, **ETCD_CA}}, **EVERYTHING), FACTS
    ),
    "without secret mounts": build_agent(agent({"useSecretMounts": False}, **EVERYTHING), FACTS),
    "a secret of the user": build_agent(agent(keysSecret="mine", proxyHost="p"), FACTS._replace(keys_secret={})),
    "zones": build_agent(agent({"zones": [{"name": "a"}, {"name": "b", "mode": "AWS"}]}), FACTS),
    "etcd that was found": build_agent(
        agent(env={"ETCD_CA_FILE": "x"}), FACTS._replace(etcd=EtcdTargets(("http://a",), ca_secret=True))
    ),
    "a remote": build_remote(remote(), FACTS),
    "a remote with everything": build_remote(remote(**EVERYTHING), FACTS),
}


def openshift() -> tuple[Object, ...]:
    facts: InstanaFacts = FACTS._replace(openshift=True, etcd=OPENSHIFT)
    return (*build_agent(agent(), facts), *etcd_copies(agent(), facts))


SETS["openshift"] = openshift()


class Cluster:
    """Applies objects of any kind."""

    def __init__(self, client: Client, served: Discovery) -> None:
        self._client = client
        self._served = served

    async def apply(self, obj: Object) -> Object:
        group, _, version = obj["apiVersion"].rpartition("/")
        resource = self._served.kind(GroupVersionKind(group, version, obj["kind"])).resource
        return await self._client.apply(resource, obj, field_manager=MANAGER, validation="Strict")


@pytest.fixture
async def cluster(server: TestServer) -> AsyncIterator[Cluster]:
    async with Client.from_kubeconfig(server.kubeconfig) as client:
        made = Cluster(client, await Discovery.look(client))
        for name in ("monitoring", "kube-system"):
            await made.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        yield made


@pytest.mark.parametrize("name", sorted(SETS))
async def test_a_set_is_accepted_strictly_and_a_second_apply_would_change_nothing(cluster: Cluster, name: str) -> None:
    for obj in SETS[name]:
        held = await cluster.apply(obj)
        assert owned_matches(held, obj, MANAGER), f"{obj['kind']} {obj['metadata']['name']} is not held as it was sent"
