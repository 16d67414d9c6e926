"""Five small modules in two versions each, published in the registry of `hortus up`, and Kymas that have all of them.

`alpha` and `bravo` define a kind and have a default resource; each module has an operator with account, role, binding,
configuration and Service: six to eight objects.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from hortus.domains import REGISTRY_FILE
from hortus.domains.modules.publishing.building import BuildPaths, BuiltModule, assemble
from hortus.domains.modules.publishing.pushing import push_component
from hortus.domains.modules.publishing.template import release_meta
from hortus.domains.modules.registry import access_from_docker_config
from hortus.domains.modules.types import KYMAS, MODULE_RELEASE_METAS, MODULE_TEMPLATES
from hortus.kube import Client, yaml
from hortus.kube.objects import Object

MODULES = ("alpha", "bravo", "charlie", "delta", "echo")
WITH_RESOURCE = MODULES[:2]
OLD, NEW = "1.0.0", "1.1.0"
CONTROL = "kcp-system"
SYSTEM = "kyma-system"
_GROUP = "operator.kyma-project.io"


async def publish(client: Client, state: Path) -> None:
    """Push all versions to the registry, and create templates and releases; each channel has the old version."""
    access = access_from_docker_config((state / REGISTRY_FILE).read_bytes())
    for name in MODULES:
        built = {version: _built(name, version) for version in (OLD, NEW)}
        for module in built.values():
            await push_component(access, module.layout(access))
            await client.create(MODULE_TEMPLATES, _here(module.template))
        meta = release_meta(built[OLD].config, ("regular", "fast"))
        await client.create(MODULE_RELEASE_METAS, _here(meta))


async def push_again(state: Path, name: str, version: str) -> None:
    """Replace a version by one with another configuration."""
    access = access_from_docker_config((state / REGISTRY_FILE).read_bytes())
    await push_component(access, _built(name, version, note="again").layout(access), overwrite=True)


async def move_channel(client: Client, module: str, version: str) -> None:
    """Give the channel `regular` of a module another version."""
    channels = [{"channel": "regular", "version": version}, {"channel": "fast", "version": OLD}]
    await client.patch(MODULE_RELEASE_METAS, module, {"spec": {"channels": channels}}, CONTROL)


def kyma(name: str) -> Object:
    """A Kyma with all modules, for the cluster of that name."""
    return {
        "apiVersion": KYMAS.api_version,
        "kind": KYMAS.kind,
        "metadata": {
            "name": name,
            "namespace": CONTROL,
            "labels": {"kyma-project.io/runtime-id": name, "kyma-project.io/instance-id": f"instance-{name}"},
            "annotations": {"skr-domain": f"{name}.demo.example.org"},
        },
        "spec": {"channel": "regular", "modules": [{"name": module, "managed": True} for module in MODULES]},
    }


def deployment_of(module: str) -> str:
    """The name of a module's Deployment."""
    return f"{module}-manager"


def _built(name: str, version: str, *, note: str = "") -> BuiltModule:
    paths = BuildPaths(
        config=Path("module-config.yaml"), template=Path("t.yaml"), constructor=Path("c.yaml"), sources=None
    )
    config = _config(name, version)
    resource = b""
    if name in WITH_RESOURCE:
        config["defaultCR"] = "default-cr.yaml"
        resource = yaml.dump(
            {"apiVersion": f"{_GROUP}/v1alpha1", "kind": name.capitalize(), "metadata": {"name": name}, "spec": {}}
        ).encode()
    manifest = "---\n".join(yaml.dump(obj) for obj in _objects(name, version, note)).encode()
    return assemble(paths, config=yaml.dump(config).encode(), manifest=manifest, default_cr=resource)


def _config(name: str, version: str) -> Object:
    return {
        "name": f"kyma-project.io/module/{name}",
        "version": version,
        "manifest": "manifest.yaml",
        "repository": f"https://github.com/example/{name}",
        "documentation": f"https://github.com/example/{name}/blob/main/README.md",
        "team": "kyma/samples",
        "icons": [{"name": "module-icon", "link": f"https://github.com/example/{name}/blob/main/logo.png"}],
        "manager": {
            "name": deployment_of(name),
            "namespace": SYSTEM,
            "group": "apps",
            "version": "v1",
            "kind": "Deployment",
        },
    }


def _objects(name: str, version: str, note: str) -> list[Object]:
    account = f"{name}-manager"
    rules = [{"apiGroups": [_GROUP], "resources": [f"{name}s"], "verbs": ["get", "list", "watch", "patch"]}]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account}
    subject = {"kind": "ServiceAccount", "name": account, "namespace": SYSTEM}
    port = {"name": "metrics", "port": 8080}
    found: list[Object] = [
        _object("v1", "ServiceAccount", account, SYSTEM),
        _object("rbac.authorization.k8s.io/v1", "ClusterRole", account, rules=rules),
        _object("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", account, roleRef=role, subjects=[subject]),
        _object("v1", "ConfigMap", f"{name}-config", SYSTEM, data={"version": version, "note": note}),
        _object("v1", "Service", f"{name}-metrics", SYSTEM, spec={"selector": {"app": name}, "ports": [port]}),
        _object("apps/v1", "Deployment", deployment_of(name), SYSTEM, spec=_workload(name, version)),
    ]
    return [_definition(name), *found] if name in WITH_RESOURCE else found


def _object(version: str, kind: str, name: str, namespace: str = "", **rest: object) -> Object:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **rest}


def _workload(name: str, version: str) -> Object:
    container = {
        "name": "manager",
        "image": f"europe-docker.pkg.dev/kyma-project/prod/{name}:{version}",
        "args": ["--leader-elect"],
        "resources": {"limits": {"memory": "128Mi"}, "requests": {"cpu": "10m", "memory": "64Mi"}},
    }
    template = {
        "metadata": {"labels": {"app": name}},
        "spec": {"serviceAccountName": f"{name}-manager", "containers": [container]},
    }
    return {"replicas": 1, "selector": {"matchLabels": {"app": name}}, "template": template}


def _definition(name: str) -> Object:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1alpha1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": name.capitalize(), "plural": f"{name}s", "singular": name}
    spec = {"group": _GROUP, "names": names, "scope": "Namespaced", "versions": [version]}
    crd = f"{name}s.{_GROUP}"
    return _object("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd, spec=spec)


class _Placed(msgspec.Struct):
    metadata: dict[str, object]


def _here(obj: Object) -> Object:
    return {**obj, "metadata": {**msgspec.convert(obj, _Placed).metadata, "namespace": CONTROL}}
