"""kubectl, unchanged: each command that a scenario of its own would not reach."""

from __future__ import annotations

import asyncio
import json
import stat
from pathlib import Path

import pytest
from tests.conformance.api.test_custom_resources import crd
from tests.conformance.api.test_kubectl import DEPLOYMENT, KUBECTL, Follow, Kubectl, command, follow, kubectl

__all__ = ["command", "follow", "kubectl"]

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="kubectl is not installed")

MAP = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "1"}}


@pytest.fixture
def space(kubectl: Kubectl, request: pytest.FixtureRequest) -> str:
    """A namespace for one test."""
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:50].strip("-")
    kubectl("create", "namespace", name)
    return f"--namespace={name}"


def test_labels_and_annotations_come_and_go(kubectl: Kubectl, space: str) -> None:
    kubectl("create", "-f", "-", space, stdin=MAP)
    assert kubectl("label", "cm", "m", "tier=one", space) == "configmap/m labeled\n"
    assert "already has a value (one), and --overwrite is false" in kubectl(
        "label", "cm", "m", "tier=two", space, code=1
    )
    assert kubectl("label", "cm", "m", "tier=two", "--overwrite", space) == "configmap/m labeled\n"
    assert kubectl("label", "cm", "m", "tier-", space) == "configmap/m unlabeled\n"
    assert kubectl("annotate", "cm", "m", "why=so", space) == "configmap/m annotated\n"
    assert kubectl("get", "cm", "m", "-o", "jsonpath={.metadata.annotations.why}", space) == "so"


def test_patches_of_every_sort(kubectl: Kubectl, space: str) -> None:
    kubectl("apply", "-f", "-", space, stdin=DEPLOYMENT)
    strategic = '{"spec":{"template":{"spec":{"containers":[{"name":"side","image":"busybox"}]}}}}'
    assert kubectl("patch", "deployment", "web", "-p", strategic, space) == "deployment.apps/web patched\n"
    shown = "jsonpath={.spec.template.spec.containers[*].name}"
    assert kubectl("get", "deployment", "web", "-o", shown, space) == "side c"
    steps = '[{"op":"remove","path":"/spec/template/spec/containers/0"}]'
    assert kubectl("patch", "deployment", "web", "--type=json", "-p", steps, space) == "deployment.apps/web patched\n"
    merge = '{"metadata":{"annotations":{"x":"y"}}}'
    assert kubectl("patch", "deployment", "web", "--type=merge", "-p", merge, space) == "deployment.apps/web patched\n"
    same = kubectl("patch", "deployment", "web", "--type=merge", "-p", merge, space)
    assert same == "deployment.apps/web patched (no change)\n"
    status = '{"status":{"replicas":2}}'
    kubectl("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", status, space)
    assert kubectl("get", "deployment", "web", "-o", "jsonpath={.spec.replicas}{.status.replicas}", space) == "22"


def test_replace_and_edit(kubectl: Kubectl, space: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kubectl("create", "-f", "-", space, stdin=MAP)
    assert kubectl("replace", "-f", "-", space, stdin={**MAP, "data": {"a": "2"}}) == "configmap/m replaced\n"
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nsed -i \'s/a: "2"/a: "3"/\' "$1"\n')
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("KUBE_EDITOR", str(editor))
    assert kubectl("edit", "cm", "m", space) == "configmap/m edited\n"
    assert kubectl("get", "cm", "m", "-o", "jsonpath={.data.a}", space) == "3"
    editor.write_text("#!/bin/sh\ntrue\n")
    assert kubectl("edit", "cm", "m", space) == "Edit cancelled, no changes made.\n"


def test_apply_prunes_by_field_and_reports_server_side_conflicts(kubectl: Kubectl, space: str) -> None:
    kubectl("apply", "-f", "-", space, stdin={**MAP, "data": {"a": "1", "b": "2"}})
    assert kubectl("apply", "-f", "-", space, stdin=MAP) == "configmap/m configured\n"
    assert json.loads(kubectl("get", "cm", "m", "-o", "jsonpath={.data}", space)) == {"a": "1"}
    other = {**MAP, "data": {"a": "9"}}
    kubectl("apply", "--server-side", "--field-manager=one", "--force-conflicts", "-f", "-", space, stdin=MAP)
    refused = kubectl("apply", "--server-side", "--field-manager=two", "-f", "-", space, stdin=other, code=1)
    assert 'conflict with "one"' in refused or "conflicts with" in refused
    forced = ("--server-side", "--field-manager=two", "--force-conflicts")
    assert kubectl("apply", *forced, "-f", "-", space, stdin=other) == "configmap/m serverside-applied\n"
    dry = kubectl("apply", "--dry-run=server", "-f", "-", space, stdin={**MAP, "data": {"a": "5"}})
    assert dry.startswith("configmap/m configured (server dry run)\n")


def test_strict_validation_names_what_is_unknown(kubectl: Kubectl, space: str) -> None:
    wrong = {**MAP, "dota": {}}
    assert 'strict decoding error: unknown field "dota"' in kubectl(
        "create", "--validate=strict", "-f", "-", space, stdin=wrong, code=1
    )
    warned = kubectl("create", "--validate=warn", "-f", "-", space, stdin=wrong)
    assert 'Warning: unknown field "dota"' in warned
    assert kubectl("delete", "cm", "m", space) == 'configmap "m" deleted\n'
    assert kubectl("create", "--validate=ignore", "-f", "-", space, stdin=wrong) == "configmap/m created\n"


async def test_a_rollout_is_over_when_its_status_says_so(kubectl: Kubectl, space: str, follow: Follow) -> None:
    kubectl("apply", "-f", "-", space, stdin=DEPLOYMENT)
    status = {"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "readyReplicas": 2, "availableReplicas": 2}
    patch = ("patch", "deployment", "web", "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    rollout = await follow("rollout", "status", "deployment/web", "--timeout=60s", space)
    assert await rollout.line() == "Waiting for deployment spec update to be observed...\n"
    await asyncio.to_thread(kubectl, *patch, space)
    assert (await rollout.end()).endswith('deployment "web" successfully rolled out\n')
    assert kubectl("rollout", "restart", "deployment/web", space) == "deployment.apps/web restarted\n"
    assert kubectl("wait", "--for=jsonpath={.status.readyReplicas}=2", "deployment/web", "--timeout=60s", space)


@pytest.mark.usefixtures("controllers")
def test_deletion_cascades_as_requested(kubectl: Kubectl, space: str) -> None:
    for cascade, left in (("background", ""), ("foreground", ""), ("orphan", "configmap/child\n")):
        kubectl("create", "-f", "-", space, stdin=MAP)
        uid = kubectl("get", "cm", "m", "-o", "jsonpath={.metadata.uid}", space)
        owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "m", "uid": uid, "blockOwnerDeletion": True}
        kubectl("create", "-f", "-", space, stdin={**MAP, "metadata": {"name": "child", "ownerReferences": [owner]}})
        kubectl("delete", "cm", "m", f"--cascade={cascade}", space)
        if not left:
            kubectl("wait", "--for=delete", "cm/child", "--timeout=60s", space)
        names = kubectl("get", "cm", "child", "--ignore-not-found", "-o", "name", space)
        assert names == left, cascade


async def test_get_follows_changes(kubectl: Kubectl, space: str, follow: Follow) -> None:
    kubectl("create", "-f", "-", space, stdin=MAP)
    seen = await follow("get", "cm", "m", "-w", "-o", "name", space)
    assert await seen.line() == "configmap/m\n"
    await asyncio.to_thread(kubectl, "label", "cm", "m", "x=y", space)
    assert await seen.line() == "configmap/m\n"


def test_authority_is_listed_and_tokens_are_made(kubectl: Kubectl, space: str) -> None:
    listed = kubectl("auth", "can-i", "--list", space)
    assert listed.splitlines()[0].split() == ["Resources", "Non-Resource", "URLs", "Resource", "Names", "Verbs"]
    assert ["*.*", "[]", "[]", "[*]"] in [line.split() for line in listed.splitlines()]
    kubectl("create", "serviceaccount", "robot", space)
    token = kubectl("create", "token", "robot", "--duration=1h", space).strip()
    assert token.count(".") == 2
    assert "system:serviceaccounts" in kubectl(
        "auth", "whoami", "--as=system:serviceaccount:x:robot", "--as-group=system:serviceaccounts"
    )
    kubectl("create", "role", "reader", "--verb=get", "--resource=configmaps", space)
    kubectl("create", "rolebinding", "reader", "--role=reader", "--user=vera", space)


def test_resources_are_listed_and_explained(kubectl: Kubectl) -> None:
    lines = [line.split() for line in kubectl("api-resources", "--api-group=apps", "--no-headers").splitlines()]
    assert ["deployments", "deploy", "apps/v1", "true", "Deployment"] in lines
    assert len(lines) == 5
    assert "apps/v1\n" in kubectl("api-versions")
    containers = next(line for line in kubectl("explain", "pod.spec").splitlines() if "containers\t" in line.lower())
    assert containers.endswith(" -required-")
    assert "FIELDS:" in kubectl("explain", "deployment.spec.strategy.rollingUpdate")
    assert 'field "nothing" does not exist' in kubectl("explain", "pod.nothing", code=1)


def test_what_kubectl_creates(kubectl: Kubectl, space: str) -> None:
    for words in (
        ("deployment", "d", "--image=nginx", "--replicas=3"),
        ("service", "clusterip", "s", "--tcp=80:8080"),
        ("job", "j", "--image=busybox"),
        ("cronjob", "c", "--image=busybox", "--schedule=0 3 * * *"),
        ("ingress", "i", "--rule=web.example/*=s:80"),
        ("poddisruptionbudget", "p", "--selector=a=b", "--min-available=1"),
        ("quota", "q", "--hard=pods=2"),
        ("secret", "generic", "g", "--from-literal=a=b"),
    ):
        assert kubectl("create", *words, space).endswith(" created\n")
    assert kubectl("run", "r", "--image=nginx", space) == "pod/r created\n"
    assert kubectl("autoscale", "deployment", "d", "--min=1", "--max=3", space).endswith(" autoscaled\n")
    assert kubectl("expose", "deployment", "d", "--port=80", "--name=e", space) == "service/e exposed\n"
    assert kubectl("set", "image", "deployment/d", "nginx=caddy", space) == "deployment.apps/d image updated\n"
    assert "nginx" not in kubectl(
        "get", "deployment", "d", "-o", "jsonpath={.spec.template.spec.containers[0].image}", space
    )
    assert "Replicas:" in kubectl("describe", "deployment", "d", space)
    kubectl("delete", "all", "--all", "--cascade=orphan", "--now", space)


def test_definitions_that_are_not_structural_are_established_never(kubectl: Kubectl) -> None:
    wrong = crd("unstructured.example")
    del wrong["spec"]["versions"][0]["selectableFields"], wrong["spec"]["versions"][0]["subresources"]
    wrong["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": {}}}}
    refused = kubectl("create", "-f", "-", stdin=wrong, code=1)
    assert "properties[spec].type: Required value: must not be empty" in refused


def test_every_generator_of_kubectl_create(kubectl: Kubectl, space: str, tmp_path: Path, slug: str) -> None:
    (tmp_path / "file.txt").write_text("content\n")
    for words, created in (
        (("configmap", "c", f"--from-file={tmp_path}/file.txt", "--from-literal=a=b"), "configmap/c"),
        (("role", "r", "--verb=get,list", "--resource=pods,deployments.apps"), "role.rbac.authorization.k8s.io/r"),
        (("rolebinding", "b", "--role=r", "--serviceaccount=default:x"), "rolebinding.rbac.authorization.k8s.io/b"),
        (("clusterrole", slug, "--verb=get", "--non-resource-url=/x"), f"clusterrole.rbac.authorization.k8s.io/{slug}"),
        (
            ("clusterrolebinding", slug, f"--clusterrole={slug}", "--group=g"),
            f"clusterrolebinding.rbac.authorization.k8s.io/{slug}",
        ),
        (("priorityclass", slug, "--value=7"), f"priorityclass.scheduling.k8s.io/{slug}"),
        (
            ("secret", "docker-registry", "d", "--docker-server=r", "--docker-username=u", "--docker-password=p"),
            "secret/d",
        ),
        (("service", "nodeport", "n", "--tcp=80"), "service/n"),
        (("service", "loadbalancer", "l", "--tcp=80:8080"), "service/l"),
        (("service", "externalname", "e", "--external-name=x.example"), "service/e"),
        (("cronjob", "j", "--image=i", "--schedule=* * * * *"), "cronjob.batch/j"),
        (("job", "once", "--from=cronjob/j"), "job.batch/once"),
        (("quota", "q", "--hard=pods=1", "--scopes=BestEffort"), "resourcequota/q"),
    ):
        assert kubectl("create", *words, space) == f"{created} created\n"
    services = kubectl("get", "services", "--no-headers", "-o", "custom-columns=N:.metadata.name,T:.spec.type", space)
    assert [line.split() for line in services.splitlines()] == [
        ["e", "ExternalName"],
        ["l", "LoadBalancer"],
        ["n", "NodePort"],
    ]
    kubectl("delete", "clusterrole,clusterrolebinding,priorityclass", slug)


def test_a_rollout_has_a_history_that_can_be_undone(kubectl: Kubectl, space: str) -> None:
    kubectl("apply", "-f", "-", space, stdin=DEPLOYMENT)
    uid = kubectl("get", "deployment", "web", "-o", "jsonpath={.metadata.uid}", space)
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": uid, "controller": True}
    for revision, image in (("1", "caddy"), ("2", "nginx")):
        # The ReplicaSet that the deployment controller would make.
        labels = {"app": "web", "pod-template-hash": revision}
        spec = {"containers": [{"name": "c", "image": image, "ports": [{"containerPort": 80}]}]}
        metadata = {
            "name": f"web-{revision}",
            "labels": labels,
            "annotations": {"deployment.kubernetes.io/revision": revision},
            "ownerReferences": [owner],
        }
        template = {"metadata": {"labels": labels}, "spec": spec}
        replicas = {"replicas": 0, "selector": {"matchLabels": labels}, "template": template}
        made = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": metadata, "spec": replicas}
        assert kubectl("create", "-f", "-", space, stdin=made) == f"replicaset.apps/web-{revision} created\n"
    history = kubectl("rollout", "history", "deployment/web", space).split()
    assert history == ["deployment.apps/web", "REVISION", "CHANGE-CAUSE", "1", "<none>", "2", "<none>"]
    assert "Image:	caddy" in kubectl("rollout", "history", "deployment/web", "--revision=1", space)
    undone = kubectl("rollout", "undo", "deployment/web", "--to-revision=1", space)
    assert undone == "deployment.apps/web rolled back\n"
    shown = "jsonpath={.spec.template.spec.containers[0].image}"
    assert kubectl("get", "deployment", "web", "-o", shown, space) == "caddy"
    assert kubectl("rollout", "pause", "deployment/web", space) == "deployment.apps/web paused\n"
    assert kubectl("rollout", "resume", "deployment/web", space) == "deployment.apps/web resumed\n"


def test_a_change_is_shown_before_it_is_made(kubectl: Kubectl, space: str) -> None:
    kubectl("apply", "--server-side", "-f", "-", space, stdin=MAP)
    assert kubectl("diff", "--server-side", "-f", "-", space, stdin=MAP) == ""
    changed = kubectl("diff", "--server-side", "-f", "-", space, stdin={**MAP, "data": {"a": "2"}}, code=1)
    assert [line for line in changed.splitlines() if line[:2] in ("- ", "+ ")] == ['-  a: "1"', '+  a: "2"'] or (
        '-  a: "1"' in changed and '+  a: "2"' in changed
    )
    assert kubectl("get", "cm", "m", "-o", "jsonpath={.data.a}", space) == "1"


async def test_raw_paths_and_waits(kubectl: Kubectl, space: str, follow: Follow) -> None:
    assert kubectl("get", "--raw", "/readyz") == "ok"
    namespace = space.partition("=")[2]
    assert json.loads(kubectl("get", "--raw", f"/api/v1/namespaces/{namespace}"))["kind"] == "Namespace"
    assert json.loads(kubectl("get", "--raw", "/apis/apps"))["preferredVersion"]["version"] == "v1"
    for condition, words in (("create", ("create", "-f", "-")), ("delete", ("delete", "cm", "m"))):
        waiting = await follow("wait", f"--for={condition}", "cm/m", "--timeout=60s", "-v=6", space)
        await waiting.line("/configmaps")  # it has asked once, and waits
        await asyncio.to_thread(kubectl, *words, space, stdin=MAP)
        assert [line for line in (await waiting.end()).splitlines() if line.startswith("configmap/")] == [
            "configmap/m condition met"
        ]
    missing = kubectl("get", "--raw", "/nowhere", code=1)
    assert "NotFound" in missing


def test_scaling_has_conditions(kubectl: Kubectl, space: str) -> None:
    kubectl("apply", "-f", "-", space, stdin=DEPLOYMENT)
    refused = kubectl("scale", "deployment/web", "--current-replicas=9", "--replicas=1", space, code=1)
    assert refused == "error: Expected replicas to be 9, was 2\n"
    assert kubectl("scale", "deployment/web", "--current-replicas=2", "--replicas=1", space) == (
        "deployment.apps/web scaled\n"
    )
    assert kubectl("get", "deployment", "web", "--subresource=scale", "-o", "jsonpath={.spec.replicas}", space) == "1"


def test_explain_names_the_types_of_fields(kubectl: Kubectl) -> None:
    pod = kubectl("explain", "pod.spec")
    for field in ("containers\t<[]Container> -required-", "tolerations\t<[]Toleration>", "affinity\t<Affinity>"):
        assert field in pod
    assert "matchLabels\t<map[string]string>" in kubectl("explain", "deployment.spec.selector")
    assert "GROUP:      apps" in kubectl("explain", "deployments")
