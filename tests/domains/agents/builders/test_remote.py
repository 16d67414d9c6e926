"""Objects of InstanaAgentRemote."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.agents.builders.samples import FACTS, built_remote, container, pod, remote, volume, volume_names

from hortus.domains.agents.builders import build_remote
from hortus.schema.names import dns1123_label

DEPLOYMENT = "Deployment/instana-agent-r-far"


def test_there_is_one_deployment_however_many_backends_there_are() -> None:
    """The Go operator applies it once for each."""
    backends = [{"endpointHost": "b", "endpointPort": "1", "key": "k"}] * 3
    objects = build_remote(remote(additionalBackends=backends), FACTS)
    assert [obj["kind"] for obj in objects].count("Deployment") == 1


@pytest.mark.parametrize(("spec", "base"), [({}, {"key": ""}), ({"zone": {"name": ""}}, {})])
def test_without_a_key_or_a_zone_there_is_no_deployment(spec: dict[str, Any], base: dict[str, Any]) -> None:
    found = built_remote(remote(spec, **base))
    assert DEPLOYMENT not in found
    assert "Secret/instana-agent-r-far-config" in found


def test_the_account_is_one_for_all_remotes_and_its_name_in_the_cr_has_no_effect() -> None:
    wanted = {"serviceAccount": {"name": "mine", "annotations": {"iam": "x"}}}
    found = built_remote(remote(wanted))
    assert found["ServiceAccount/instana-agent-remote"]["metadata"]["annotations"] == {"iam": "x"}
    assert pod(found[DEPLOYMENT])["serviceAccountName"] == "instana-agent-remote"
    off = built_remote(remote({"serviceAccount": {"create": False}}))
    assert "ServiceAccount/instana-agent-remote" not in off


def test_repository_certificate_and_secrets_are_mounted() -> None:
    base = {
        "host": {"repository": "cache"},
        "tls": {"secretName": "cert"},
        "downloadKey": "d",
        "proxyHost": "p",
        "proxyUser": "u",
        "agentReleaseRepoMirrorUsername": "m",
    }
    deployment = built_remote(remote(**base))[DEPLOYMENT]
    assert volume_names(deployment) == ["config", "remote-agent-tls", "repo", "instana-secrets"]
    assert volume(deployment, "repo")[0] == {"persistentVolumeClaim": {"claimName": "cache"}}
    assert volume(deployment, "instana-secrets")[0] == {
        "secret": {
            "secretName": "far",
            "items": [
                {"key": "key", "path": "INSTANA_AGENT_KEY"},
                {"key": "downloadKey", "path": "INSTANA_DOWNLOAD_KEY"},
                {"key": "proxyUser", "path": "INSTANA_AGENT_PROXY_USER"},
                {"key": "httpsProxy", "path": "HTTPS_PROXY"},
                {"key": "mirrorReleaseRepoUsername", "path": "AGENT_RELEASE_REPOSITORY_MIRROR_USERNAME"},
            ],
            "defaultMode": 0o400,
            "optional": False,
        }
    }


def test_a_new_remote_is_probed_itself_and_one_of_the_go_operator_keeps_its_template() -> None:
    """The Go operator's probe asks the loopback of the node, where another agent may answer."""
    new = container(built_remote(remote())[DEPLOYMENT])["livenessProbe"]["httpGet"]
    assert new == {"path": "/status", "port": 42699}
    facts = FACTS._replace(corrected={"instana-agent-r-far": False})
    kept = container(built_remote(remote(), facts)[DEPLOYMENT])["livenessProbe"]["httpGet"]
    assert kept == {"host": "127.0.0.1", "path": "/status", "port": 42699}


def test_a_remote_has_nothing_of_the_node() -> None:
    found = pod(built_remote(remote())[DEPLOYMENT])
    assert not {"hostNetwork", "hostPID"} & found.keys()
    assert not {"ports", "securityContext"} & container(built_remote(remote())[DEPLOYMENT]).keys()


def hostname(wanted: str, name: str = "far") -> str:
    deployment = built_remote(remote({"hostname": {"name": wanted}}, name=name))[f"Deployment/instana-agent-r-{name}"]
    found: str = pod(deployment)["hostname"]
    return found


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        ("Custom-Host", "custom-host"),
        ("a.b_c", "a-b-c"),
        ("-x", "a-x"),
        ("x-", "x-0"),
        ("1x", "1x"),
        ("a" * 62 + "-b", "a" * 62 + "0"),
        ("", "instana-agent-r-far-monitoring"),
    ],
)
def test_a_host_name_is_made_valid(wanted: str, expected: str) -> None:
    assert hostname(wanted) == expected


def test_a_long_name_of_the_object_gives_a_valid_host_name() -> None:
    """The Go operator neither cuts nor cleans the default."""
    assert hostname("", "my.site-" + "a" * 60) == ("instana-agent-r-my-site-" + "a" * 60)[:63]


@given(st.text())
def test_every_host_name_is_a_label(wanted: str) -> None:
    assert dns1123_label(hostname(wanted)) == ""
