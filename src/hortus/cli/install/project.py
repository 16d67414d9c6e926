"""The project of the garden that the installation on a management cluster works in.

The shell loads this module with every command, so it loads what it uses when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hortus.kube import Client
    from hortus.kube.objects import Object

HOME = "hortus-system"
"""The namespace that Hortus is installed in by default."""
_LABELS = "app.kubernetes.io/name=hortus,app.kubernetes.io/component=controllers"


async def installed_project(client: Client, namespace: str) -> str:
    """The project of the controllers that watch `namespace`; empty if there are none, several, or none to be read.

    An empty namespace stands for any.
    """
    found = {
        str(config.get("gardener-project-name") or "")
        for config in await installed_configurations(client)
        if not namespace or config.get("watch-namespace", namespace) in ("", namespace)
    }
    return found.pop() if len(found) == 1 else ""


async def installed_configurations(client: Client) -> list[Object]:
    """The configuration files of the controllers on this cluster, as far as the caller may read them."""
    from hortus.kube.errors import KubeError
    from hortus.kube.objects import Resource

    config_maps = Resource("", "v1", "configmaps", "ConfigMap")
    for place in ("", HOME):
        try:
            listed = (await client.list(config_maps, place, labels=_LABELS)).items
        except KubeError:
            continue
        return [config for config_map in listed if (config := _configuration(config_map))]
    return []


def _configuration(config_map: Object) -> Object:
    from hortus.kube import yaml

    try:
        found = yaml.load((config_map.get("data") or {}).get("config.yaml", ""))
    except yaml.YamlError:
        return {}
    return found if isinstance(found, dict) else {}
