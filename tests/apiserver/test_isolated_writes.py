"""Each endpoint of an object writes its own parts: the main one all but the status, `status` the status alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hortus.apiserver.resources import preparing
from hortus.kube.objects import Object

OLD: Object = {"metadata": {"name": "a", "uid": "u", "labels": {"l": "old"}, "managedFields": ["old"]}, "spec": 1}


def isolated(
    subresource: str, obj: Object, old: Object, *, custom: bool = False, status: bool = True, suffix: str = "core/pods"
) -> Object:
    kind: Any = SimpleNamespace(definition=SimpleNamespace(status=status), custom=custom, suffix=suffix)
    return preparing.isolated(kind, subresource, {**obj, "metadata": dict(obj["metadata"])}, old)


def test_the_main_endpoint_keeps_the_status_as_it_is() -> None:
    sent: Object = {"metadata": {"name": "a"}, "spec": 2, "status": "mine"}
    assert isolated("", sent, {**OLD, "status": "theirs"}) == {**sent, "status": "theirs"}
    assert isolated("", sent, OLD) == {"metadata": {"name": "a"}, "spec": 2}, "there was none, so there is none"


@pytest.mark.parametrize("subresource", ["status", "approval"])
def test_the_status_endpoint_writes_the_status_alone(subresource: str) -> None:
    sent: Object = {"metadata": {"name": "a", "labels": {"l": "new"}, "uid": "u"}, "spec": 2, "status": "mine"}
    written = isolated(subresource, sent, OLD)
    assert (written["spec"], written["status"]) == (1, "mine")
    assert written["metadata"] == {"name": "a", "labels": {"l": "new"}, "uid": "u"}, "built-in kinds take metadata"
    written = isolated(subresource, sent, OLD, custom=True)
    assert written["metadata"] == {"name": "a", "uid": "u", "labels": {"l": "old"}}, "custom resources do not"
    assert "status" not in isolated(subresource, {"metadata": {"name": "a"}}, {**OLD, "status": "theirs"})


def test_what_is_needed_to_write_is_taken_from_the_request() -> None:
    sent: Object = {"metadata": {"name": "a", "resourceVersion": "7", "managedFields": ["new"]}, "status": "mine"}
    written = isolated("status", sent, OLD, custom=True)["metadata"]
    assert (written["resourceVersion"], written["managedFields"], written["uid"]) == ("7", ["new"], "u")


def test_bindings_of_pods_and_kinds_without_a_status_are_written_whole() -> None:
    sent: Object = {"metadata": {"name": "a"}, "spec": 2, "status": "mine"}
    assert isolated("binding", sent, OLD) == sent
    shoots = "core.gardener.cloud/shoots"
    assert isolated("binding", sent, {**OLD, "status": "theirs"}, suffix=shoots) == {**sent, "status": "theirs"}
    assert isolated("", sent, OLD, status=False) == sent
