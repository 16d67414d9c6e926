"""Release records of Helm, packed as Helm packs them."""

from __future__ import annotations

import base64
import gzip
import json

import pytest

from hortus.domains.agents.operating.helm import BadRecord, Installed, installed
from hortus.kube.objects import Object

MANIFEST = """---
# Source: instana-agent/templates/account.yaml
apiVersion: v1
kind: ServiceAccount
metadata:
  name: instana-agent
  namespace: monitoring
---
apiVersion: v1
kind: Secret
metadata: {name: kept, annotations: {"helm.sh/resource-policy": keep}}
---
# an empty document
"""
OBJECTS = (
    Installed("v1", "ServiceAccount", "monitoring", "instana-agent", False),
    Installed("v1", "Secret", "", "kept", True),
)


def record(version: int, manifest: str = MANIFEST, *, kind: str = "Secret", packed: bool = True) -> Object:
    text = json.dumps({"name": "instana-agent", "version": version, "manifest": manifest}).encode()
    value = base64.b64encode(gzip.compress(text) if packed else text)
    if kind == "Secret":
        value = base64.b64encode(value)
    metadata = {"name": f"sh.helm.release.v1.instana-agent.v{version}", "namespace": "monitoring"}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, "data": {"release": value.decode()}}


@pytest.mark.parametrize("kind", ["Secret", "ConfigMap"])
@pytest.mark.parametrize("packed", [True, False])
def test_the_objects_of_a_release_are_read_from_its_record(kind: str, packed: bool) -> None:
    assert installed([record(1, kind=kind, packed=packed)]) == OBJECTS


def test_the_latest_revision_counts_and_not_the_last_name() -> None:
    assert installed([record(9, ""), record(10), record(2, "")]) == OBJECTS


def test_no_record_means_no_objects() -> None:
    assert installed([]) == ()


@pytest.mark.parametrize("value", ["", "%%%", base64.b64encode(b"no base64 inside!").decode()])
def test_a_record_that_cannot_be_read_is_named(value: str) -> None:
    broken = record(1) | {"data": {"release": value}}
    with pytest.raises(BadRecord, match=r"monitoring/sh\.helm\.release\.v1\.instana-agent\.v1"):
        installed([broken])


def test_a_record_that_unpacks_to_more_than_any_release_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hortus.domains.agents.operating.helm._LARGEST", 1000)
    with pytest.raises(BadRecord, match="more than 1000 bytes"):
        installed([record(1, "#" * 5000)])
