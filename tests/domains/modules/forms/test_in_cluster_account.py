"""The in-cluster form as exactly the account that the chart makes, with the ClusterRoles that the operator names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.domains.modules.forms.world import CONFIG_MAPS, HOME, OneCluster

from hortus.cli.install.applying import Installation
from hortus.cli.install.chart import objects
from hortus.domains.modules.types import KYMAS
from hortus.kube import Resource
from hortus.kube.objects import Object
from hortus.testing.waiting import wait_for

RELEASE = "hortus-system"
ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
ROLES = Resource("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole", namespaced=False)
RULES: list[Object] = [
    {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"]},
    {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch", "delete"]},
]
"""The permissions that docs/modules/forms.md names, and those of a module with a ConfigMap."""


async def kubeconfig_of_the_chart(here: OneCluster, path: Path) -> Path:
    """Install the chart in the in-cluster form, and return a kubeconfig of its account."""
    values = {
        "watchNamespace": HOME,
        "garden": {"secretName": ""},
        "config": {"modules": True, "in-kcp-mode": False, "oci-registry-host": "registry.example.org"},
        "modules": {"clusterRoles": ["hortus-modules"]},
    }
    made = objects(RELEASE, values)
    await Installation(here.client, made, str, namespace=RELEASE).apply()
    [deployment] = [one for one in made if one["kind"] == "Deployment"]
    mounted = [one["name"] for one in deployment["spec"]["template"]["spec"]["volumes"]]
    assert "garden" not in mounted, "a Secret that nobody makes would hold up the pods"
    issued = await here.client.create_subresource(ACCOUNTS, "hortus", "token", {"spec": {}}, RELEASE)
    document: dict[str, Any] = here.server.kubeconfig_dict(here.name)
    document["users"][0]["user"] = {"token": issued["status"]["token"]}
    path.write_text(json.dumps(document))
    return path


async def test_the_named_roles_are_what_modules_may_do_and_a_lack_is_named(here: OneCluster, tmp_path: Path) -> None:
    await here.client.create(ROLES, {"metadata": {"name": "hortus-modules"}, "rules": RULES})
    kubeconfig = await kubeconfig_of_the_chart(here, tmp_path / "account")
    await here.become_control_plane()
    await here.kyma("greeter", "template-operator")
    async with here.controllers(kubeconfig=kubeconfig):
        await wait_for(here.client, CONFIG_MAPS, "greeter", HOME)

        def lacks(obj: Object) -> bool:
            modules = {one["name"]: one for one in (obj.get("status") or {}).get("modules") or ()}
            found = modules.get("template-operator", {}).get("message", "")
            return modules.get("greeter", {}).get("state") == "Ready" and "system:serviceaccount:hortus-system" in found

        kyma = await wait_for(here.client, KYMAS, "default", HOME, until=lacks)
        [message] = [one["message"] for one in kyma["status"]["modules"] if one["name"] == "template-operator"]
        assert "customresourcedefinitions" in message or "clusterroles" in message or "namespaces" in message
        await here.client.patch(
            ROLES, "hortus-modules", {"rules": [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]}
        )
        await here.become_available()
        await here.kyma_is("Ready")
