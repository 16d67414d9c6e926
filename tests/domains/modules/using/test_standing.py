"""Version and state of the workload that shows that a module is installed."""

from __future__ import annotations

from typing import Any

import pytest
from tests.domains.modules.kyma.documents import template

from hortus.domains.modules.using.objects import is_custom
from hortus.domains.modules.using.standing import VERSION_LABEL, is_of, version_of, workload_state
from hortus.kube.objects import GroupVersionKind, Object


def workload(*, labels: dict[str, str] | None = None, image: str = "", name: str = "manager", **status: Any) -> Object:
    pod = {"spec": {"containers": [{"name": name, "image": image}]}}
    return {"metadata": {"labels": labels or {}}, "spec": {"template": pod}, "status": status}


@pytest.mark.parametrize(
    ("found", "version"),
    [
        (workload(labels={VERSION_LABEL: "v1.2.3"}, image="example.com/web:9.9.9"), "1.2.3"),
        (workload(image="example.com:5000/team/web:1.2.3"), "1.2.3"),
        (workload(image="example.com/web:v1.2.3@sha256:00"), "1.2.3"),
        (workload(image="example.com:5000/team/web"), ""),
        (workload(image="example.com/web:1.2.3", name="sidecar"), ""),
        ({"metadata": {"labels": 7}}, ""),
        ({}, ""),
    ],
)
def test_the_version_is_that_of_the_label_or_of_the_manager_s_image(found: Object, version: str) -> None:
    assert version_of(found) == version


def test_a_workload_without_a_version_is_that_of_the_only_template() -> None:
    silent = workload()
    assert is_of(template("istio", "1.0.0"), silent, alone=True)
    assert not is_of(template("istio", "1.0.0"), silent, alone=False)
    assert not is_of(template("istio", "1.0.0"), workload(labels={VERSION_LABEL: "1.1.0"}), alone=True)


@pytest.mark.parametrize(
    ("status", "state"),
    [
        ({"state": "Warning"}, "Warning"),
        ({"conditions": [{"type": "Available", "status": "True"}]}, "Ready"),
        ({"conditions": [{"type": "Available", "status": "False"}], "readyReplicas": 1}, "NotReady"),
        ({"readyReplicas": 1}, "Ready"),
        ({"readyReplicas": 0}, "NotReady"),
        ({}, "Unknown"),
    ],
)
def test_the_state_is_its_own_or_follows_from_condition_and_replicas(status: dict[str, Any], state: str) -> None:
    assert workload_state(workload(**status)) == state


@pytest.mark.parametrize(
    ("group", "custom"),
    [
        ("operator.kyma-project.io", True),
        ("", False),
        ("apps", False),
        ("rbac.authorization.k8s.io", False),
        ("apiextensions.k8s.io", False),
    ],
)
def test_kinds_of_kubernetes_itself_are_no_module_s_own(group: str, custom: bool) -> None:
    assert is_custom(GroupVersionKind(group, "v1", "Thing")) == custom
