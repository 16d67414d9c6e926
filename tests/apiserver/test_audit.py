"""The audit log over real sockets, and its policy."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.apiserver.wire import Wire, configmap, connected

from hortus.apiserver import ApiServerSettings, AuditSettings
from hortus.apiserver.audit import AuditLog, AuditPolicy, Level, PolicyError, Question, read_policy
from hortus.testing.apiserver import TestServer, running_apiserver

POLICY = """
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: None
  users: [quiet]
- level: None
  nonResourceURLs: ["/healthz*", "/version"]
- level: RequestResponse
  omitManagedFields: true
  resources:
  - group: ""
    resources: [secrets, configmaps, serviceaccounts/token]
- level: Metadata
  omitStages: [ResponseStarted]
  resources:
  - group: rbac.authorization.k8s.io
- level: Request
"""
CONFIGMAPS = "/api/v1/namespaces/default/configmaps"


class Recorded:
    """The lines that a server has written."""

    def __init__(self, server: TestServer, path: Path) -> None:
        self._server = server
        self._path = path

    def events(self) -> list[dict[str, Any]]:
        auditor = self._server.server.auditor
        assert auditor is not None
        self._server.run(auditor.log.flush())
        lines = [orjson.loads(line) for line in self._path.read_bytes().splitlines()]
        return [line for line in lines if line["user"].get("username") != "system:apiserver"]

    def last(self) -> dict[str, Any]:
        return self.events()[-1]


@pytest.fixture
async def recorded(tmp_path: Path) -> AsyncIterator[tuple[Wire, Recorded]]:
    policy, log = tmp_path / "policy.yaml", tmp_path / "logs" / "audit.log"
    policy.write_text(POLICY)
    settings = ApiServerSettings(audit=AuditSettings(policy, log))
    async with (
        running_apiserver(settings=settings) as server,
        connected(server.url, server.token, server.tls()) as wire,
    ):
        yield wire, Recorded(server, log)


async def test_a_write_is_recorded_with_its_bodies(recorded: tuple[Wire, Recorded]) -> None:
    wire, log = recorded
    answer = await wire.post(CONFIGMAPS, configmap("a"), headers={"Audit-Id": "my-own", "User-Agent": "tests/1"})
    assert answer.headers["Audit-Id"] == "my-own"
    event = log.last()
    received, at = event.pop("requestReceivedTimestamp"), event.pop("stageTimestamp")
    assert received <= at
    shown = {**answer.body, "metadata": dict(answer.body["metadata"])}
    del shown["metadata"]["managedFields"]
    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "RequestResponse",
        "auditID": "my-own",
        "stage": "ResponseComplete",
        "requestURI": CONFIGMAPS,
        "verb": "create",
        "user": {"username": "kubernetes-admin", "groups": ["system:masters", "system:authenticated"]},
        "sourceIPs": ["127.0.0.1"],
        "userAgent": "tests/1",
        "objectRef": {"resource": "configmaps", "namespace": "default", "name": "a", "apiVersion": "v1"},
        "responseStatus": {"metadata": {}, "code": 201},
        "requestObject": configmap("a"),
        "responseObject": shown,
    }


async def test_refusals_and_impersonation_are_recorded(recorded: tuple[Wire, Recorded]) -> None:
    wire, log = recorded
    await wire.get("/api/v1/nodes", headers={"Impersonate-User": "jane"})
    event = log.last()
    assert (event["user"]["username"], event["impersonatedUser"]["username"]) == ("kubernetes-admin", "jane")
    status = event["responseStatus"]
    assert (status["code"], status["reason"], status["status"]) == (403, "Forbidden", "Failure")
    await wire.get("/api/v1/nodes", headers={"Authorization": "Bearer wrong"})
    event = log.last()
    assert (event["user"], event["responseStatus"]["code"]) == ({}, 401)
    assert "wrong" not in str(event)


async def test_credentials_never_reach_the_log(recorded: tuple[Wire, Recorded], tmp_path: Path) -> None:
    wire, log = recorded
    secrets = "/api/v1/namespaces/default/secrets"
    body = {"metadata": {"name": "s"}, "stringData": {"key": "hush-one"}}
    await wire.post(secrets, body)
    await wire.merge(f"{secrets}/s", {"stringData": {"key": "hush-two"}})
    await wire.json_patch(f"{secrets}/s", [{"op": "add", "path": "/stringData", "value": {"key": "hush-three"}}])
    await wire.apply(f"{secrets}/t", {"apiVersion": "v1", "kind": "Secret", **body, "metadata": {"name": "t"}})
    await wire.get(secrets)
    accounts = "/api/v1/namespaces/default/serviceaccounts"
    await wire.post(accounts, {"metadata": {"name": "robot"}})
    token = (await wire.post(f"{accounts}/robot/token", {"spec": {}})).body["status"]["token"]
    await wire.post(
        "/apis/authentication.k8s.io/v1/tokenreviews",
        {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}},
    )
    events = log.events()
    text = (tmp_path / "logs" / "audit.log").read_text()
    assert "hush" not in text and "aHVzaC" not in text and token not in text
    assert [event["responseStatus"]["code"] for event in events] == [201, 200, 200, 201, 200, 201, 201, 201]
    assert events[0]["requestObject"]["stringData"] == {"key": "[redacted]"}
    assert events[4]["responseObject"]["items"][0]["data"] == {"key": "[redacted]"}
    assert "responseObject" not in events[6]


async def test_a_watch_is_recorded_when_it_begins_and_when_it_ends(recorded: tuple[Wire, Recorded]) -> None:
    wire, log = recorded
    async with wire.watch(f"{CONFIGMAPS}?watch=true&timeoutSeconds=1") as events:
        # Where the machine is busy, the second is over by now, and its end recorded too.
        assert [(e["verb"], e["stage"]) for e in log.events()][:1] == [("watch", "ResponseStarted")]
        while not await events.ended():
            pass
    assert (log.last()["stage"], log.last()["responseStatus"]["code"]) == ("ResponseComplete", 200)


async def test_requests_that_the_policy_omits_are_not_recorded(recorded: tuple[Wire, Recorded]) -> None:
    wire, log = recorded
    await wire.get("/healthz")
    await wire.get("/version")
    assert log.events() == []
    await wire.get("/apis/rbac.authorization.k8s.io/v1/clusterroles")
    assert (log.last()["level"], "responseObject" in log.last()) == ("Metadata", False)
    await wire.post("/api/v1/namespaces", {"metadata": {"name": "n"}})
    assert (log.last()["level"], log.last()["requestObject"]["metadata"]) == ("Request", {"name": "n"})
    assert "responseObject" not in log.last()


async def test_annotations_of_webhooks_and_policies_are_recorded(recorded: tuple[Wire, Recorded]) -> None:
    wire, log = recorded
    path = "/apis/admissionregistration.k8s.io/v1"
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    spec = {
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "false", "message": "no"}],
        "auditAnnotations": [{"key": "named", "valueExpression": "object.metadata.name"}],
    }
    await wire.post(f"{path}/validatingadmissionpolicies", {"metadata": {"name": "p"}, "spec": spec})
    bound = {"policyName": "p", "validationActions": ["Audit"]}
    await wire.post(f"{path}/validatingadmissionpolicybindings", {"metadata": {"name": "b"}, "spec": bound})
    assert (await wire.post(CONFIGMAPS, configmap("a"))).code == 201
    found = log.last()["annotations"]
    [failure] = orjson.loads(found.pop("validation.policy.admission.k8s.io/validation_failure"))
    assert (failure["message"], failure["policy"], failure["binding"]) == ("no", "p", "b")
    assert found == {"p/named": "a"}


async def test_a_full_file_is_put_aside(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.log", largest=100, kept=2)
    await log.start()
    for number in range(10):
        log.write(b"%d" % number * 39)
        await log.flush()
    await log.stop()
    files = sorted(path.name for path in tmp_path.iterdir())
    assert files == ["audit.log", "audit.log.1", "audit.log.2"]
    assert (tmp_path / "audit.log").read_bytes() == b"8" * 39 + b"\n" + b"9" * 39 + b"\n"
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600


def _asked(**changes: Any) -> Question:
    base = Question("jane", ("dev",), "get", "", "pods", "", "default", "a", "")
    return base._replace(**changes)


@pytest.mark.parametrize(
    ("rule", "asked", "matches"),
    [
        ({}, _asked(), True),
        ({"users": ["john"]}, _asked(), False),
        ({"userGroups": ["dev", "ops"]}, _asked(), True),
        ({"verbs": ["list"]}, _asked(), False),
        ({"namespaces": ["default"]}, _asked(), True),
        ({"namespaces": [""]}, _asked(namespace=""), True),
        ({"resources": [{"group": "apps"}]}, _asked(), False),
        ({"resources": [{"resources": ["pods"]}]}, _asked(subresource="log"), False),
        ({"resources": [{"resources": ["pods/log"]}]}, _asked(subresource="log"), True),
        ({"resources": [{"resources": ["pods/*"]}]}, _asked(subresource="log"), True),
        ({"resources": [{"resources": ["*/log"]}]}, _asked(subresource="log"), True),
        ({"resources": [{"resources": ["*"]}]}, _asked(subresource="log"), True),
        ({"resources": [{"resources": ["pods"], "resourceNames": ["b"]}]}, _asked(), False),
        ({"nonResourceURLs": ["/api*"]}, _asked(), False),
        ({"nonResourceURLs": ["/api*"]}, _asked(resource="", path="/apis"), True),
        ({"resources": [{"group": ""}]}, _asked(resource="", path="/apis"), False),
    ],
)
def test_rules(rule: dict[str, Any], asked: Question, matches: bool) -> None:
    policy = AuditPolicy({"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "rules": [{"level": "Metadata", **rule}]})
    assert policy.verdict(asked).level == (Level.METADATA if matches else Level.NONE)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rules: []", "Object missing required field"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: []", "rules: at least one rule is required"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Loud}]", "$.rules[0].level"),
        ("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: None, colour: green}]", "colour"),
        ("[", "audit policy"),
    ],
)
def test_an_unreadable_policy_is_refused_with_its_field(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    with pytest.raises(PolicyError) as caught:
        read_policy(path)
    assert words in str(caught.value)
    assert str(path) in str(caught.value)
