"""docs/clusters/shoot.md: each row of its table is what changing that field changes, and no field is missing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Any

import orjson
import pytest
from tests.docs.consoles import ROOT
from tests.domains.clusters.shoot.documents import shoot_for
from tests.domains.clusters.shoot.samples import CONFIG, WINDOWS, pool, runtime

from hortus.domains.clusters.shoot import Context
from hortus.domains.clusters.shoot.subnets import single, triple
from hortus.domains.clusters.types import Runtime
from hortus.kube import Object
from hortus.schema import crd

PAGE = (ROOT / "docs/clusters/shoot.md").read_text()
_CODE = re.compile(r"`([^`]+)`")
_OIDC = {"clientID": "c", "issuerURL": "https://i.example.org"}
_ZONES = ["eu-central-1a"]
_PROBES: dict[str, Any] = {
    "metadata.generation": 2,
    "metadata.labels": {
        "kyma-project.io/runtime-id": "rt-2",
        "kyma-project.io/global-account-id": "ga-2",
        "kyma-project.io/subaccount-id": "sa-2",
    },
    "spec.shoot.name": "c-2",
    "spec.shoot.purpose": "evaluation",
    "spec.shoot.platformRegion": "cf-us10",
    "spec.shoot.region": "eu-central-2",
    "spec.shoot.secretBindingName": "other",
    "spec.shoot.licenceType": "Partner",
    "spec.shoot.enforceSeedLocation": False,
    "spec.shoot.enableNvidiaOpenshell": True,
    "spec.shoot.kubernetes.version": "1.34.1",
    "spec.shoot.kubernetes.kubeAPIServer.oidcConfig": _OIDC,
    "spec.shoot.kubernetes.kubeAPIServer.additionalOidcConfig": [_OIDC],
    "spec.shoot.kubernetes.kubeAPIServer.acl": {"allowedCIDRs": ["192.0.2.0/24"]},
    "spec.shoot.provider.type": "openstack",
    "spec.shoot.provider.workers": [pool("other", zones=["eu-central-1b"])],
    "spec.shoot.provider.additionalWorkers": [pool("second", zones=["eu-central-1b"])],
    "spec.shoot.provider.controlPlaneConfig": {"a": 1},
    "spec.shoot.provider.infrastructureConfig": {"a": 1},
    "spec.shoot.networking.nodes": "10.180.0.0/16",
    "spec.shoot.networking.pods": "100.64.0.0/12",
    "spec.shoot.networking.services": "100.104.0.0/13",
    "spec.shoot.networking.type": "cilium",
    "spec.shoot.networking.dualStack": True,
    "spec.shoot.networking.vpcNetwork": "vpc-1",
    "spec.shoot.controlPlane": {"highAvailability": {"failureTolerance": {"type": "node"}}},
    "spec.security.administrators": ["other"],
    "spec.security.networking": {"filter": {"egress": {"enabled": False}}},
    "spec.imageRegistryCache": [{"name": "a", "config": {"upstream": "docker.io"}}],
    "spec.auditLogAccessEnabled": True,
}


def _rows() -> dict[str, list[str]]:
    """Each Runtime field of the page's first table, with the Shoot fields of its row."""
    table = PAGE[PAGE.index("## Every field") : PAGE.index("Besides these")]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| `")]
    return {_CODE.findall(cells[0])[0]: _CODE.findall(cells[1]) for cells in rows}


ROWS = _rows()


def _base() -> Object:
    return runtime(pool=pool(zones=_ZONES), kubernetes={"version": "1.31", "kubeAPIServer": {}})


def _probed(path: str) -> Object:
    made: Object = orjson.loads(orjson.dumps(_base()))
    *parents, key = path.split(".")
    place = made
    for parent in parents:
        place = place[parent]
    place[key] = {**place[key], **_PROBES[path]} if path == "metadata.labels" else _PROBES[path]
    if path == "spec.shoot.region":
        made["spec"]["shoot"]["provider"]["workers"][0]["zones"] = ["eu-central-2a"]
    return made


def _differences(one: Any, other: Any, path: str = "") -> Iterator[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _differences(one.get(key), other.get(key), f"{path}.{key}" if path else key)
    elif one != other:
        yield path


def _changed(path: str, *, structured: bool) -> set[str]:
    context = Context(windows=WINDOWS, acl=True, structured_authentication=structured)
    return set(_differences(shoot_for(_base(), CONFIG, context), shoot_for(_probed(path), CONFIG, context)))


@pytest.mark.parametrize("path", ROWS)
def test_a_row_names_exactly_what_its_field_changes(path: str) -> None:
    changed = _changed(path, structured=False) | _changed(path, structured=True)
    documented = ROWS[path]
    for place in documented:
        assert any(found == place or found.startswith(f"{place}.") for found in changed), (place, changed)
    for found in changed:
        assert any(found == place or found.startswith(f"{place}.") for place in documented), (found, documented)


def _fields(schema: Object, path: str) -> Iterator[str]:
    """Paths of a schema down to what a row of the page speaks of."""
    if path in ROWS or not schema.get("properties"):
        yield path
        return
    for name, below in schema["properties"].items():
        yield from _fields(below, f"{path}.{name}")


def test_no_field_of_a_runtime_is_missing_and_none_is_made_up() -> None:
    spec = crd(Runtime)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert set(_fields(spec, "spec")) | {"metadata.generation", "metadata.labels"} == set(ROWS)


def test_the_subnets_of_the_page_are_the_computed_ones() -> None:
    nodes = IPv4Network("10.250.0.0/16")
    for slot in range(8):
        cut = triple(nodes, slot)
        cells = [slot + 1, cut.workers, cut.public, cut.internal, single(nodes, slot)]
        assert f"| {' | '.join(map(str, cells))} |" in PAGE
