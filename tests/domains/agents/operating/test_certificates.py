"""Certificates that the cluster issues, through the controller: asked for, mounted when issued, withdrawn, refused."""

from __future__ import annotations

from typing import Any

from tests.domains.agents.operating.test_options import asking
from tests.domains.agents.operating.world import CRDS, HOME, AgentsWorld, base, condition

from hortus.domains.agents.names import CERTIFICATES
from hortus.domains.agents.operating.objects import DAEMON_SETS, SECRETS
from hortus.domains.agents.types import INSTANA_AGENTS
from hortus.engine.typed import metadata_of
from hortus.kube.objects import Object
from hortus.testing.waiting import wait_for

ISSUED = f"{HOME}-certificate"
OPTION = "certificate: {issuer: {name: ca}}"


def established(crd: Object) -> bool:
    return condition(crd, "Established")[0] == "True"


async def cert_manager(here: AgentsWorld) -> None:
    """Serve Certificates, as a cluster with cert-manager does."""
    names = {
        "plural": CERTIFICATES.plural,
        "singular": "certificate",
        "kind": "Certificate",
        "listKind": "CertificateList",
    }
    schema: Object = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    spec = {"group": CERTIFICATES.group, "names": names, "scope": "Namespaced", "versions": [version]}
    name = f"{CERTIFICATES.plural}.{CERTIFICATES.group}"
    await here.client.apply(CRDS, {"metadata": {"name": name}, "spec": spec}, field_manager="test")
    await wait_for(here.client, CRDS, name, until=established)


def completed(obj: Object) -> tuple[str, str]:
    return condition(obj, "ConfigurationComplete")


def mounted(daemon_set: Object) -> list[str]:
    volumes: list[Any] = daemon_set["spec"]["template"]["spec"]["volumes"]
    return [one["secret"]["secretName"] for one in volumes if one["name"] == "instana-agent-tls"]


async def test_pods_get_a_certificate_when_it_is_issued_and_lose_it_with_the_option(here: AgentsWorld) -> None:
    await cert_manager(here)
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        await here.change(INSTANA_AGENTS, HOME, asking(OPTION))
        await here.until(lambda obj: completed(obj) == ("False", "CertificateNotIssued"))
        assert (await wait_for(here.client, CERTIFICATES, ISSUED, HOME))["spec"]["issuerRef"]["name"] == "ca"
        assert mounted(await wait_for(here.client, DAEMON_SETS, HOME, HOME)) == []
        await here.create(SECRETS, ISSUED, stringData={"tls.crt": "certificate", "tls.key": "key"})
        await wait_for(here.client, DAEMON_SETS, HOME, HOME, until=lambda obj: mounted(obj) == [ISSUED])
        await here.until(lambda obj: completed(obj) != ("False", "CertificateNotIssued"))
        await here.change(INSTANA_AGENTS, HOME, asking(None))
        await here.gone(CERTIFICATES, ISSUED)
        await wait_for(here.client, DAEMON_SETS, HOME, HOME, until=lambda obj: mounted(obj) == [])


async def test_half_a_certificate_in_the_spec_does_not_hide_the_issued_one(here: AgentsWorld) -> None:
    await cert_manager(here)
    await here.agent(agent=base() | {"tls": {"certificate": "Y2VydGlmaWNhdGU="}})
    await here.create(SECRETS, ISSUED, stringData={"tls.crt": "certificate", "tls.key": "key"})
    await here.change(INSTANA_AGENTS, HOME, asking(OPTION))
    async with here.controllers():
        await here.reconciled()
    assert mounted(await wait_for(here.client, DAEMON_SETS, HOME, HOME)) == [ISSUED]


async def test_a_certificate_as_it_should_be_is_not_written_again(here: AgentsWorld) -> None:
    await cert_manager(here)
    await here.agent()
    await here.change(INSTANA_AGENTS, HOME, asking(OPTION))
    async with here.controllers():
        await here.reconciled()
        await here.at_rest()
        before = metadata_of(await wait_for(here.client, CERTIFICATES, ISSUED, HOME)).resource_version
    here.requests.methods.clear()
    async with here.controllers():
        await here.at_rest()
        assert here.requests.writes == []
        await here.change(CERTIFICATES, ISSUED, {"spec": {"secretName": "another"}})
        await here.change(INSTANA_AGENTS, HOME, {"metadata": {"labels": {"look": "again"}}})
        repaired = await wait_for(
            here.client, CERTIFICATES, ISSUED, HOME, until=lambda obj: obj["spec"]["secretName"] == ISSUED
        )
        assert metadata_of(repaired).resource_version != before


async def test_a_cluster_without_cert_manager_names_the_fix_and_nothing_is_half_applied(here: AgentsWorld) -> None:
    await here.agent()
    async with here.controllers():
        await here.reconciled()
        await here.at_rest()
        before = await here.owned()
        await here.change(INSTANA_AGENTS, HOME, asking(f"{OPTION}\nreadinessProbe: true"))
        agent = await here.until(lambda obj: condition(obj, "ReconcileSucceeded")[0] == "False")
        assert (
            f"dry run of Certificate {HOME}/{ISSUED}: the cluster does not serve this kind" in agent["status"]["reason"]
        )
        assert "install cert-manager, or remove option certificate" in agent["status"]["reason"]
        assert await here.owned() == before
