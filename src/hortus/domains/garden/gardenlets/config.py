"""The GardenletConfiguration of a Gardenlet: its rules, and the form in which the chart gets it. Pure.

The kind is Gardener's and open: what is not read here is handed on as it was written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Final, NamedTuple

from hortus.domains.garden.kinds.gardenlet import GARDEN_NAMESPACE

API_VERSION: Final = "gardenlet.config.gardener.cloud/v1alpha1"
KIND: Final = "GardenletConfiguration"
KUBECONFIG: Final = "gardenlet-kubeconfig"
"""Secret in the seed with the kubeconfig of the garden, which gardenlet writes."""
BOOTSTRAP_KUBECONFIG: Final = "gardenlet-kubeconfig-bootstrap"
"""Secret in the seed with the kubeconfig by which gardenlet gets its own."""


class SecretPlace(NamedTuple):
    """A Secret in the seed or in the garden."""

    namespace: str
    name: str


def config_problems(config: Mapping[str, Any] | None, name: str) -> Iterator[str]:
    """The broken rules of a configuration, with the paths of fields; `name` is that of the Gardenlet."""
    if config is None:
        yield "spec.config: is needed: a GardenletConfiguration with a seedConfig"
        return
    if (config.get("apiVersion"), config.get("kind")) != (API_VERSION, KIND):
        yield f"spec.config: must be a {KIND} of {API_VERSION}"
    for part in ("gardenClientConnection", "leaderElection"):
        if not isinstance(config.get(part) or {}, Mapping):
            yield f"spec.config.{part}: must be an object"
    seed = config.get("seedConfig")
    if not isinstance(seed, Mapping) or not isinstance(seed.get("spec"), Mapping):
        yield "spec.config.seedConfig: is needed, with the spec of the Seed"
        return
    metadata = seed.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        yield "spec.config.seedConfig.metadata: must be an object"
    elif metadata.get("name") not in (None, "", name):
        yield (
            f"spec.config.seedConfig.metadata.name: must be {name}, the name of the Gardenlet, or left out: two "
            "gardenlets must not have one Seed"
        )
    if any(not isinstance(_at(config, *path) or {}, Mapping) for path in _OBJECTS):
        yield "spec.config: " + ", ".join(".".join(path) for path in _OBJECTS) + " must be objects where they are given"


_OBJECTS: Final = (
    ("gardenClientConnection", "kubeconfigSecret"),
    ("gardenClientConnection", "bootstrapKubeconfig"),
    ("seedConfig", "spec", "backup"),
    ("seedConfig", "spec", "settings"),
)


def seed_name(config: Mapping[str, Any]) -> str:
    """The name of the Seed in a configuration; empty where it has none."""
    return str(_at(config, "seedConfig", "metadata", "name") or "")


def wants_vpa(config: Mapping[str, Any]) -> bool:
    """Reports whether gardenlet deploys a VerticalPodAutoscaler into the seed, which it does by default."""
    return _at(config, "seedConfig", "spec", "settings", "verticalPodAutoscaler", "enabled") is not False


def backup_secret(config: Mapping[str, Any]) -> SecretPlace | None:
    """The Secret with the credentials of the backup; None for a Seed without one, or with others."""
    found = _at(config, "seedConfig", "spec", "backup", "credentialsRef")
    if not isinstance(found, Mapping) or found.get("kind") != "Secret":
        return None
    return SecretPlace(str(found.get("namespace") or GARDEN_NAMESPACE), str(found.get("name") or ""))


def kubeconfig_secret(config: Mapping[str, Any]) -> SecretPlace:
    """The Secret in the seed with the kubeconfig of the garden."""
    return _place(_at(config, "gardenClientConnection", "kubeconfigSecret"), KUBECONFIG)


def garden_address(config: Mapping[str, Any]) -> str:
    """The address of the garden for this gardenlet; empty where the configuration has none."""
    return str(_at(config, "gardenClientConnection", "gardenClusterAddress") or "")


def garden_ca(config: Mapping[str, Any]) -> str:
    """The certificate authority of the garden in base64; empty where the configuration has none."""
    return str(_at(config, "gardenClientConnection", "gardenClusterCACert") or "")


def computed(config: Mapping[str, Any], name: str, *, address: str, bootstrap: str) -> dict[str, Any]:
    """The configuration for the chart. `bootstrap` is the kubeconfig to begin with; empty for none."""
    made: dict[str, Any] = deepcopy(dict(config))
    seed = made["seedConfig"]
    seed["metadata"] = {**(seed.get("metadata") or {}), "name": name}
    made["leaderElection"] = {**(made.get("leaderElection") or {}), "resourceNamespace": GARDEN_NAMESPACE}
    connection = {**(made.get("gardenClientConnection") or {})}
    connection["gardenClusterAddress"] = connection.get("gardenClusterAddress") or address
    connection["kubeconfigSecret"] = _reference(kubeconfig_secret(config))
    former = connection.pop("bootstrapKubeconfig", None)
    if bootstrap:
        connection["bootstrapKubeconfig"] = {
            **_reference(_place(former, BOOTSTRAP_KUBECONFIG)),
            "kubeconfig": bootstrap,
        }
    made["gardenClientConnection"] = connection
    return made


def _reference(place: SecretPlace) -> dict[str, Any]:
    return {"name": place.name, "namespace": place.namespace}


def _place(found: Any, name: str) -> SecretPlace:
    known = found if isinstance(found, Mapping) else {}
    return SecretPlace(str(known.get("namespace") or GARDEN_NAMESPACE), str(known.get("name") or name))


def _at(found: Any, *path: str) -> Any:
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found
