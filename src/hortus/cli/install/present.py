"""The installation on a management cluster, as far as the user of a command may see it.

The shell loads this module with every command, so it loads what it uses when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from hortus.kube import Client
    from hortus.kube.objects import Object

HOME = "hortus-system"
"""The namespace that Hortus is installed in by default."""
_MOUNTED = "converter-config-filepath"
_LABELS = "app.kubernetes.io/name=hortus,app.kubernetes.io/component=controllers"


class _Installed(NamedTuple):
    """One Deployment's namespace, and its configuration file."""

    namespace: str
    config: Mapping[str, Any]

    def watches(self, namespace: str) -> bool:
        return self.config.get("watch-namespace", namespace) in ("", namespace)


async def installed_project(client: Client, namespace: str) -> str:
    """The project of the controllers that watch `namespace`; empty if there are none, several, or none to be read.

    An empty namespace stands for any.
    """
    found = {
        str(one.config.get("gardener-project-name") or "")
        for one in await _installed(client)
        if not namespace or one.watches(namespace)
    }
    return found.pop() if len(found) == 1 else ""


async def unserved_reason(client: Client, kind: str, namespace: str) -> str:
    """The reason for which no installed controller reconciles a kind in a namespace.

    Empty where one does, and where the caller may see no installation.
    """
    installed = await _installed(client)
    watching = [one for one in installed if one.watches(namespace)]
    if installed and not watching:
        watched = ", ".join(sorted(str(one.config["watch-namespace"]) for one in installed))
        return f"the controllers watch namespace {watched}, and not {namespace} (watchNamespace of the chart)"
    reasons = [_unserved(one.config, kind) for one in watching]
    if reasons and all(reasons):
        return reasons[0]
    return await _not_running(client, watching) if watching else ""


def _unserved(config: Mapping[str, Any], kind: str) -> str:
    """The domain's own reason, by the flags that the controllers have.

    A path among them is one of the pods. It counts as present: without the file a pod does not become ready.
    """
    from hortus.cli.flags import FLAGS
    from hortus.domains import all_domains
    from hortus.engine.flags import FlagError, FlagSet

    config = {name: __file__ if name == _MOUNTED and value else value for name, value in config.items()}
    try:
        values = FlagSet(FLAGS).parse([f"--{name}={_text(value)}" for name, value in config.items()])
    except FlagError as error:
        return f"the configuration of the controllers is wrong: {error}"
    domains = (domain for domain in all_domains() if kind in {resource.kind for resource in domain.kinds()})
    return next((domain.unserved_reason(values) for domain in domains), "")


async def _not_running(client: Client, installed: Sequence[_Installed]) -> str:
    """The reason for which no Deployment has a ready pod; empty where one has, or none may be read."""
    from hortus.cli.install.rollout import why_not_ready
    from hortus.kube.errors import KubeError
    from hortus.kube.objects import Resource, key_of

    deployments, reason = Resource("apps", "v1", "deployments", "Deployment"), ""
    for namespace in dict.fromkeys(one.namespace for one in installed):
        try:
            found = (await client.list(deployments, namespace, labels=_LABELS)).items
        except KubeError:
            return ""
        for deployment in found:
            if (deployment.get("status") or {}).get("readyReplicas"):
                return ""
            reason = f"Deployment {key_of(deployment)} has no ready pod"
            if details := await why_not_ready(client, {**deployment, "kind": deployments.kind}):
                reason += f": {details[0]}"
    return reason


async def _installed(client: Client) -> list[_Installed]:
    from hortus.kube.errors import KubeError
    from hortus.kube.objects import Resource, key_of

    config_maps = Resource("", "v1", "configmaps", "ConfigMap")
    for place in ("", HOME):
        try:
            listed = (await client.list(config_maps, place, labels=_LABELS)).items
        except KubeError:
            continue
        return [_Installed(key_of(found).namespace, config) for found in listed if (config := _configuration(found))]
    return []


def _configuration(config_map: Object) -> Object:
    from hortus.kube import yaml

    try:
        found = yaml.load((config_map.get("data") or {}).get("config.yaml", ""))
    except yaml.YamlError:
        return {}
    return found if isinstance(found, dict) else {}


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
