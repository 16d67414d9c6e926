"""kubectl, unchanged, against the server: what people type first."""

from __future__ import annotations

import asyncio
import itertools
import json
import shutil
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from tests.conformance.api.conftest import Server
from tests.conformance.api.test_custom_resources import crd

KUBECTL = shutil.which("kubectl")
pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

Kubectl = Callable[..., str]
Follow = Callable[..., Awaitable["Running"]]
PATIENCE = 60.0
"""Seconds after which a command that does not end, or a line that does not come, fails the test."""

DEPLOYMENT = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: nginx, ports: [{containerPort: 80}]}]}
"""


@pytest.fixture(scope="module")
def command(server: Server, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """kubectl with the options that lead it to the server."""
    return [str(KUBECTL), f"--kubeconfig={server.kubeconfig}", f"--cache-dir={tmp_path_factory.mktemp('kubectl')}"]


@pytest.fixture(scope="module")
def kubectl(command: list[str], tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    folder = tmp_path_factory.mktemp("typed")

    def run(*words: str, stdin: object = None, code: int | None = 0) -> str:
        text = stdin if isinstance(stdin, str) or stdin is None else json.dumps(stdin)
        whole = [*command, *words]
        done = subprocess.run(whole, input=text, capture_output=True, text=True, timeout=PATIENCE, cwd=folder)
        assert code in (None, done.returncode), done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


class Running:
    """A kubectl that continues while the test does something else. Its output and its log come in one stream."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        self._process = process
        self._printed = process.stdout

    async def line(self, holding: str = "") -> str:
        """The next line with this text. Raises EOFError when kubectl ends before it."""
        async with asyncio.timeout(PATIENCE):
            while line := (await self._printed.readline()).decode():
                if holding in line:
                    return line
        raise EOFError(f"kubectl has ended without {holding!r}")

    async def end(self) -> str:
        """The remaining output of a kubectl that ends by itself, with 0."""
        async with asyncio.timeout(PATIENCE):
            printed = (await self._printed.read()).decode()
            assert await self._process.wait() == 0, printed
        return printed


@pytest.fixture
async def follow(command: list[str], tmp_path: Path) -> AsyncIterator[Follow]:
    """Starts kubectl commands that continue until they end or the test does."""
    processes: list[asyncio.subprocess.Process] = []

    async def start(*words: str) -> Running:
        pipe = asyncio.subprocess.PIPE
        made = await asyncio.create_subprocess_exec(
            *command, *words, stdout=pipe, stderr=asyncio.subprocess.STDOUT, cwd=tmp_path
        )
        processes.append(made)
        return Running(made)

    yield start
    for process in processes:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def test_apply_diff_scale_and_delete(kubectl: Kubectl) -> None:
    assert kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web created\n"
    assert kubectl("apply", "-f", "-", stdin=DEPLOYMENT) == "deployment.apps/web unchanged\n"
    changed = DEPLOYMENT.replace("nginx", "caddy")
    assert "+      - image: caddy" in kubectl("diff", "-f", "-", stdin=changed, code=1).replace("        -", "      -")
    assert kubectl("apply", "--server-side", "-f", "-", stdin=changed) == "deployment.apps/web serverside-applied\n"
    assert kubectl("scale", "deployment/web", "--replicas=5") == "deployment.apps/web scaled\n"
    table = kubectl("get", "deployments").split()
    assert table[:7] == ["NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "web", "0/5"]
    assert kubectl("delete", "deployment", "web") == 'deployment.apps "web" deleted\n'


def test_imperative_commands_speak_protobuf(kubectl: Kubectl) -> None:
    assert kubectl("create", "namespace", "imp") == "namespace/imp created\n"
    kubectl("create", "secret", "generic", "s", "-n", "imp", "--from-literal=k=v")
    assert kubectl("get", "secret", "s", "-n", "imp", "-o", "jsonpath={.data.k}") == "dg=="
    kubectl("label", "secret", "s", "-n", "imp", "a=b")
    assert kubectl("get", "secrets", "-n", "imp", "-l", "a=b", "-o", "name") == "secret/s\n"
    assert kubectl("delete", "namespace", "imp") == 'namespace "imp" deleted\n'


def test_mistakes_are_named(kubectl: Kubectl) -> None:
    wrong = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}, "dota": {"a": "b"}}
    assert 'strict decoding error: unknown field "dota"' in kubectl("apply", "-f", "-", stdin=wrong, code=1)
    assert '(NotFound): configmaps "none" not found' in kubectl("get", "configmap", "none", code=1)


def test_custom_kinds_are_explained_and_waited_for(kubectl: Kubectl, tmp_path: Path) -> None:
    kubectl("apply", "-f", "-", stdin=crd("kubectl.example"))
    # A real server makes a CRD with conditions that are null, at which a wait for one of them fails at once.
    for awaited in ("jsonpath={.status.conditions[0]}", "condition=Established"):
        kubectl("wait", f"--for={awaited}", "crd/beds.kubectl.example", "--timeout=60s")
    # Some servers publish a schema a moment after they serve its kind, and kubectl keeps the document that it read
    # before, so each try reads it again; the test's own limit of time ends this.
    tries = itertools.count()
    while "size\t<integer> -required-" not in kubectl(
        "explain", "beds.spec", f"--cache-dir={tmp_path / str(next(tries))}", code=None
    ):
        pass
    bed = {"apiVersion": "kubectl.example/v1", "kind": "Bed", "metadata": {"name": "b"}, "spec": {"size": 4}}
    assert kubectl("create", "-f", "-", stdin=bed) == "bed.kubectl.example/b created\n"
    assert kubectl("get", "beds.kubectl.example").split()[:5] == ["NAME", "SIZE", "AGE", "b", "4"]
    kubectl("delete", "crd", "beds.kubectl.example")


def test_who_am_i_and_what_may_i(kubectl: Kubectl) -> None:
    assert "kubernetes-admin" in kubectl("auth", "whoami")
    assert kubectl("auth", "can-i", "delete", "pods") == "yes\n"
    assert kubectl("auth", "can-i", "delete", "pods", "--as=nobody", code=1) == "no\n"
    kubectl("create", "clusterrolebinding", "viewers", "--clusterrole=view", "--user=viola")
    # A server learns of a binding by a watch; the test's own limit of time ends this.
    while kubectl("auth", "can-i", "list", "pods", "--as=viola", code=None) != "yes\n":
        pass
    assert "secrets is forbidden" in kubectl("get", "secrets", "--as=viola", code=1)


def test_events_are_shown_by_what_they_say_and_not_by_name(kubectl: Kubectl) -> None:
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "web.1", "namespace": "default"},
        "involvedObject": {"kind": "Pod", "name": "web", "namespace": "default"},
        "reason": "Started",
        "message": "it runs",
        "type": "Normal",
    }
    kubectl("create", "-f", "-", stdin=event)
    assert kubectl("get", "events").splitlines()[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]


LIST = """
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: of-a-list}, data: {a: b}}
- {apiVersion: v1, kind: Secret, metadata: {name: of-a-list}}
- apiVersion: apps/v1
  kind: Deployment
  metadata: {name: of-a-list}
  spec:
    selector: {matchLabels: {a: b}}
    template:
      metadata: {labels: {a: b}}
      spec:
        containers:
        - name: c
          image: nginx
          resources: {limits: {cpu: 1, memory: 1Gi}}
          livenessProbe: {httpGet: {port: 80, path: /}}
- apiVersion: policy/v1
  kind: PodDisruptionBudget
  metadata: {name: of-a-list}
  spec: {minAvailable: 50%, selector: {matchLabels: {a: b}}}
"""


def test_lists_of_objects_of_several_kinds(kubectl: Kubectl) -> None:
    """kubectl validates a List by itself, by /openapi/v2 in protobuf."""
    made = "".join(
        f"{kind}/of-a-list {{0}}\n" for kind in ("configmap", "secret", "deployment.apps", "poddisruptionbudget.policy")
    )
    assert kubectl("create", "-f", "-", stdin=LIST) == made.format("created")
    assert kubectl("replace", "-f", "-", stdin=LIST) == made.format("replaced")
    assert kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=LIST) == made.format(
        "serverside-applied"
    )
    kubectl("delete", "-f", "-", stdin=LIST)
    refused = kubectl("create", "-f", "-", stdin=LIST.replace("data: {a: b}", "date: {a: b}"), code=1)
    assert 'ValidationError(ConfigMap): unknown field "date" in io.k8s.api.core.v1.ConfigMap' in refused
