"""The built-in kinds' rules, called the way the server calls them."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.builtin import definitions
from hortus.apiserver.resources.definition import ResourceDefinition, WriteContext
from hortus.schema import Structural

BY_KIND = {(d.resource.api_version, d.resource.kind): d for d in definitions()}
NOW = 1_700_000_000.0


def context(subresource: str = "") -> WriteContext:
    user = UserInfo("tester", groups=("system:authenticated",))
    return WriteContext("root", "default", user, NOW, subresource=subresource)


class Rules:
    """Creates and updates objects by a kind's rules; problems come as `path: message`."""

    def __init__(self) -> None:
        self._compiled: dict[str, Structural] = {}

    def definition(self, obj: dict[str, Any]) -> ResourceDefinition:
        return BY_KIND[obj["apiVersion"], obj["kind"]]

    def _schema(self, obj: dict[str, Any]) -> Structural:
        kind = obj["kind"] + obj["apiVersion"]
        if kind not in self._compiled:
            self._compiled[kind] = Structural.compile(self.definition(obj).schema, native=True)
        return self._compiled[kind]

    def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        """The object as it would be stored; fails the test when it would be refused."""
        assert self.problems(obj) == []
        return obj

    def problems(self, obj: dict[str, Any]) -> list[str]:
        """The problems for which a create would be refused."""
        obj.setdefault("metadata", {}).setdefault("name", "x")
        obj["metadata"].setdefault("uid", "5d3c0d0e-0000-4000-8000-000000000001")
        definition, schema = self.definition(obj), self._schema(obj)
        if definition.status and not definition.status_on_create:
            obj.pop("status", None)
        schema.prune(obj)
        schema.default(obj)
        definition.strategy.prepare_create(obj, context())
        if definition.complete is not None:
            definition.complete(obj, context())
        if definition.allocate is not None:
            definition.allocate(obj, None)
        found = [f"{e.path}: {e.message}" for e in schema.validate(obj)]
        return found + [f"{p.path}: {p.message}" for p in definition.strategy.validate(obj, context())]

    def update(self, obj: dict[str, Any], old: dict[str, Any], subresource: str = "") -> list[str]:
        """The problems for which a change of `old` into `obj` would be refused; `obj` is prepared in place."""
        definition, schema = self.definition(obj), self._schema(obj)
        schema.default(obj)
        definition.strategy.prepare_update(obj, old, context(subresource))
        if definition.allocate is not None and not subresource:
            definition.allocate(obj, old)
        found = [f"{e.path}: {e.message}" for e in schema.validate(obj, old)]
        found += [f"{p.path}: {p.message}" for p in definition.strategy.validate_update(obj, old, context(subresource))]
        return found


@pytest.fixture(scope="session")
def rules() -> Rules:
    return Rules()
