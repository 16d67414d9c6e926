"""docs/clusters/audit.md: with its policy, its questions find who did it, on our API server and on a real one."""

from __future__ import annotations

import asyncio
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import orjson
import pytest
from tests.docs.consoles import ROOT
from tests.oracles.controlplane import RealServer, find_assets, running_control_plane, why_none

from hortus.apiserver import ApiServerSettings, AuditSettings
from hortus.domains.clusters.types import RUNTIMES, Runtime
from hortus.domains.credentials.types import GARDENER_CLUSTERS, Annotation, GardenerCluster
from hortus.kube import Access, Client, Impersonation, Resource, yaml
from hortus.kube.errors import Forbidden, NotFound
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.testing.apiserver import TestServer, started_apiserver

POLICY = ROOT / "examples" / "audit-policy.yaml"
PAGE = (ROOT / "docs" / "clusters" / "audit.md").read_text()
QUERIES = re.findall(r"^```jq\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
HIDDEN = "c2VjcmV0LXZhbHVl"
PLACE = "kcp-system"
Event = dict[str, Any]


class Audited(NamedTuple):
    """A server that records, and what it has recorded."""

    server: TestServer | RealServer
    log: Path

    def events(self) -> list[Event]:
        return [orjson.loads(line) for line in self.log.read_bytes().splitlines()]


@pytest.fixture(scope="module", params=["embedded", pytest.param("real", marks=pytest.mark.oracle)])
def audited(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Audited]:
    folder = tmp_path_factory.mktemp("audited")
    log = folder / "audit.log"
    if request.param == "embedded":
        with started_apiserver(settings=ApiServerSettings(audit=AuditSettings(POLICY, log))) as server:
            asyncio.run(everything(server.kubeconfig))
            assert server.server.auditor is not None
            server.run(server.server.auditor.log.flush())
            yield Audited(server, log)
        return
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    flags = (f"--audit-policy-file={POLICY}", f"--audit-log-path={log}")
    with running_control_plane(assets, folder, flags=flags) as real:
        asyncio.run(everything(real.kubeconfig))
        yield Audited(real, log)


def example(name: str) -> Object:
    found: Object = yaml.load((ROOT / "examples" / name).read_bytes())
    return found


def secret(name: str, namespace: str) -> Object:
    return {"metadata": {"name": name, "namespace": namespace}, "data": {"config": HIDDEN}}


async def everything(kubeconfig: Path) -> None:
    """Performs the actions that the page asks about, each as another person."""
    async with Client.from_kubeconfig(kubeconfig) as root:
        for kind, resource in ((Runtime, RUNTIMES), (GardenerCluster, GARDENER_CLUSTERS)):
            await root.apply(CRDS, crd(kind), field_manager="test")
            await established(root, resource)
        for name in (PLACE, "hortus-system"):
            await root.create(NAMESPACES, {"metadata": {"name": name}})
        await root.create(SECRETS, secret("kubeconfig-aws", PLACE))
        await root.create(SECRETS, secret("gardener-credentials", "hortus-system"))
        await asyncio.gather(*(acts(Client(access)) for access, acts in people(root.access)))


def people(access: Access) -> Iterator[tuple[Access, Callable[[Client], Any]]]:
    for user, (group, acts) in _PEOPLE.items():
        yield msgspec.structs.replace(access, impersonate=Impersonation(user=user, groups=(group,))), acts


async def established(client: Client, resource: Resource) -> None:
    name = f"{resource.plural}.{resource.group}"
    async with asyncio.timeout(60), client.watch(CRDS, name=name, initial_events=True) as events:
        async for event in events:
            conditions = (event.object.get("status") or {}).get("conditions") or ()
            if any(found["type"] == "Established" and found["status"] == "True" for found in conditions):
                break
    async with asyncio.timeout(60):
        while True:
            try:
                await client.list(resource, PLACE)
            except NotFound:
                await asyncio.sleep(0.05)
            else:
                return


async def _changes_a_runtime(client: Client) -> None:
    async with client:
        await client.create(RUNTIMES, example("runtimes/aws.yaml"))
        await client.patch(RUNTIMES, "aws", {"spec": {"shoot": {"purpose": "production"}}}, PLACE)
        await client.patch(RUNTIMES, "aws", {"status": {"state": "Ready"}}, PLACE, subresource="status")
        await client.delete(RUNTIMES, "aws", PLACE)


async def _reads_a_kubeconfig(client: Client) -> None:
    async with client:
        await client.get(SECRETS, "kubeconfig-aws", PLACE)
        await client.list(SECRETS, PLACE)


async def _rotates(client: Client) -> None:
    async with client:
        made = await client.create(GARDENER_CLUSTERS, example("gardenercluster.yaml"))
        force = {"metadata": {"annotations": {Annotation.FORCE_ROTATION: "true"}}}
        await client.patch(GARDENER_CLUSTERS, made["metadata"]["name"], force, PLACE)


async def _writes_kubeconfigs(client: Client) -> None:
    async with client:
        await client.patch(SECRETS, "kubeconfig-aws", {"data": {"config": HIDDEN}}, PLACE)
        await client.create(SECRETS, secret("kubeconfig-mine", PLACE))


async def _reads_the_gardens_credential(client: Client) -> None:
    async with client:
        await client.get(SECRETS, "gardener-credentials", "hortus-system")


async def _tries_to(client: Client) -> None:
    async with client:
        with pytest.raises(Forbidden):
            await client.get(SECRETS, "gardener-credentials", "hortus-system")


_PEOPLE: dict[str, tuple[str, Callable[[Client], Any]]] = {
    "anna": ("system:masters", _changes_a_runtime),
    "ben": ("system:masters", _reads_a_kubeconfig),
    "cleo": ("system:masters", _rotates),
    "dora": ("system:masters", _writes_kubeconfigs),
    "emil": ("system:masters", _reads_the_gardens_credential),
    "fred": ("nobodies", _tries_to),
}


# The page's questions, for where there is no jq.


def who(event: Event) -> str:
    return str((event.get("impersonatedUser") or event["user"])["username"])


def ref(event: Event, field: str) -> Any:
    return (event.get("objectRef") or {}).get(field)


def code(event: Event) -> Any:
    return (event.get("responseStatus") or {}).get("code")


def changed_the_runtime(event: Event) -> list[Any] | None:
    if ref(event, "resource") != "runtimes" or ref(event, "name") != "aws" or ref(event, "subresource") is not None:
        return None
    spec = (event.get("requestObject") or {}).get("spec") or {}
    return [who(event), event["verb"], code(event), (spec.get("shoot") or {}).get("provider")]


def read_the_kubeconfig(event: Event) -> list[Any] | None:
    if not _secret_of(event, PLACE) or event["verb"] not in ("get", "list", "watch"):
        return None
    if event["stage"] != "ResponseComplete" or ref(event, "name") not in (None, "kubeconfig-aws"):
        return None
    return [who(event), event["verb"], code(event), event["sourceIPs"][0]]


def had_rotated(event: Event) -> list[Any] | None:
    annotations = ((event.get("requestObject") or {}).get("metadata") or {}).get("annotations") or {}
    if ref(event, "resource") != "gardenerclusters" or Annotation.FORCE_ROTATION not in annotations:
        return None
    return [who(event), event["verb"], ref(event, "name")]


def wrote_kubeconfigs(event: Event) -> list[Any] | None:
    if not _secret_of(event, PLACE) or event["verb"] in ("get", "list", "watch"):
        return None
    return [who(event), event["verb"], ref(event, "name"), code(event)]


def touched_the_gardens_credential(event: Event) -> list[Any] | None:
    if not _secret_of(event, "hortus-system") or event["stage"] != "ResponseComplete":
        return None
    if ref(event, "name") not in (None, "gardener-credentials"):
        return None
    return [who(event), event["verb"], code(event)]


def _secret_of(event: Event, namespace: str) -> bool:
    return ref(event, "resource") == "secrets" and ref(event, "namespace") == namespace


ANSWERS = (
    changed_the_runtime,
    read_the_kubeconfig,
    had_rotated,
    wrote_kubeconfigs,
    touched_the_gardens_credential,
)


def said(audited: Audited, number: int) -> list[list[Any]]:
    """The question's answers: by jq where it is, else by the same in Python; by both where both are."""
    found = [answer for event in audited.events() if (answer := ANSWERS[number](event)) is not None]
    if jq := shutil.which("jq"):
        printed = subprocess.run([jq, "-c", QUERIES[number], str(audited.log)], capture_output=True, check=True).stdout
        assert [orjson.loads(line) for line in printed.splitlines()] == found
    return found


def of(person: str, found: list[list[Any]]) -> list[list[Any]]:
    return [answer[1:] for answer in found if answer[0] == person]


def test_the_page_has_a_question_for_each_answer() -> None:
    assert len(QUERIES) == len(ANSWERS)


def test_who_changed_a_runtime_is_found_with_what_was_asked(audited: Audited) -> None:
    found = of("anna", said(audited, 0))
    assert [answer[:2] for answer in found] == [["create", 201], ["patch", 200], ["delete", 200]]
    assert found[0][2]["type"] == "aws"
    changes = [event for event in audited.events() if changed_the_runtime(event)]
    assert changes[1]["requestObject"] == {"spec": {"shoot": {"purpose": "production"}}}
    assert changes[1]["responseObject"]["spec"]["shoot"]["purpose"] == "production"
    assert all("managedFields" not in event["responseObject"].get("metadata", {}) for event in changes)
    [report] = [e for e in audited.events() if ref(e, "resource") == "runtimes" and ref(e, "subresource") == "status"]
    assert (report["level"], "requestObject" in report) == ("Metadata", False)


def test_who_read_a_kubeconfig_is_found_with_the_address(audited: Audited) -> None:
    assert of("ben", said(audited, 1)) == [["get", 200, "127.0.0.1"], ["list", 200, "127.0.0.1"]]


def test_who_had_a_kubeconfig_rotated_is_found(audited: Audited) -> None:
    name = example("gardenercluster.yaml")["metadata"]["name"]
    assert of("cleo", said(audited, 2)) == [["patch", name]]


def test_who_wrote_kubeconfigs_is_found(audited: Audited) -> None:
    found = of("dora", said(audited, 3))
    assert found == [["patch", "kubeconfig-aws", 200], ["create", "kubeconfig-mine", 201]]


def test_who_read_the_gardens_credential_or_tried_to_is_found(audited: Audited) -> None:
    found = said(audited, 4)
    assert of("emil", found) == [["get", 200]]
    assert of("fred", found) == [["get", 403]]


def test_no_value_of_a_secret_is_in_the_log(audited: Audited) -> None:
    assert HIDDEN.encode() not in audited.log.read_bytes()
