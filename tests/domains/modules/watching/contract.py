"""The agent's objects of the contract: runtime-watcher's file, with the changes that lifecycle-manager makes."""

from __future__ import annotations

from pathlib import Path

from hortus.kube import yaml
from hortus.kube.objects import Object


def of_contract(folder: Path, *, image: str, address: str, trigger: str) -> dict[tuple[str, str], Object]:
    """The objects of the file by kind and name, as they are applied to a cluster."""
    found = {}
    for obj in yaml.load_all((folder / "klm/watcher/skr-webhook-resources.yaml").read_text()):
        metadata = obj["metadata"]
        metadata.setdefault("labels", {})["operator.kyma-project.io/managed-by"] = "kyma"
        if obj["kind"] != "PriorityClass":
            metadata["namespace"] = "kyma-system"
        if obj["kind"] == "Deployment":
            template = obj["spec"]["template"]
            template["metadata"]["labels"]["operator.kyma-project.io/pod-restart-trigger"] = trigger
            container = template["spec"]["containers"][0]
            container["image"] = image
            next(one for one in container["env"] if one["name"] == "KCP_ADDR")["value"] = address
        found[obj["kind"], metadata["name"]] = obj
    return found
