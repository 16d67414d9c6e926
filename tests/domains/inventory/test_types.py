"""The CRD of ClusterProfile against the published one, and an installed one of somebody else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hortus.domains.inventory.types import ClusterProfile
from hortus.kube import yaml
from hortus.schema import crd


def _checked(schema: Any) -> Any:
    """The schema without its prose, and with lists in one order."""
    if isinstance(schema, dict):
        return {
            name: _checked(value) for name, value in schema.items() if name != "description" or isinstance(value, dict)
        }
    return sorted(map(_checked, schema), key=str) if isinstance(schema, list) else schema


def test_the_crd_accepts_exactly_what_the_published_one_does(upstream: Path) -> None:
    path = upstream / "cluster-inventory" / "multicluster.x-k8s.io_clusterprofiles.yaml"
    published, ours = yaml.load(path.read_text()), crd(ClusterProfile)
    for one in (published, ours):
        one["spec"]["versions"][0].pop("additionalPrinterColumns", None)
    assert _checked(ours["spec"]["versions"]) == _checked(published["spec"]["versions"])
    assert ours["spec"]["names"] == published["spec"]["names"]
    assert ours["spec"]["scope"] == published["spec"]["scope"]
