"""Pushed component versions, read by Gardener's implementation of the Open Component Model."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.domains.modules.publishing.conftest import DEFAULT_CR, MANIFEST, ModuleFolder
from tests.oracles.programs import GoProgram, python_program

from hortus.simulation.registry import RegistryServer

pytestmark = pytest.mark.oracle


@pytest.fixture(scope="module")
def reader() -> Iterator[GoProgram]:
    yield from python_program("ocm")


@pytest.fixture
def published(folder: ModuleFolder, registry: RegistryServer, tmp_path: Path) -> dict[str, Any]:
    """Pushes the module; returns the request for it."""
    auth = base64.b64encode(b"author:right").decode()
    docker = tmp_path / "config.json"
    docker.write_bytes(orjson.dumps({"auths": {registry.address: {"auth": auth}}}))
    folder.type("push", "-r", f"http://{registry.address}/prod", "--docker-config", str(docker))
    return {
        "repository": f"{registry.address}/prod",
        "name": "kyma-project.io/module/hello",
        "version": "1.0.3",
    }


def test_the_descriptor_passes_the_schema_and_is_understood(reader: GoProgram, published: dict[str, Any]) -> None:
    answer = reader.ask(**published)
    assert "error" not in answer, answer["error"]
    found = answer["descriptor"]
    assert found["meta"]["schemaVersion"] == "v2"
    component = found["component"]
    assert (component["name"], component["version"]) == ("kyma-project.io/module/hello", "1.0.3")
    [context] = component["repositoryContexts"]
    assert (context["type"], context["subPath"]) == ("ociRegistry", "prod")
    resources = {one["name"]: (one["relation"], one["access"]["type"]) for one in component["resources"]}
    assert resources == {
        "hello": ("external", "ociRegistry"),
        "raw-manifest": ("local", "localBlob/v1"),
        "default-cr": ("local", "localBlob/v1"),
        "moduletemplate": ("local", "localBlob/v1"),
    }
    for one in component["resources"]:
        if one["relation"] == "local":
            assert one["access"]["localReference"] == f"sha256:{one['digest']['value']}"
    [source] = component["sources"]
    assert source["access"]["repoUrl"] == "https://example.com/hello"


def test_the_files_are_those_of_the_module(reader: GoProgram, published: dict[str, Any]) -> None:
    blobs = reader.ask(**published)["blobs"]
    contents = {
        name: (blob["mediaType"], [base64.b64decode(text).decode() for text in blob["files"].values()])
        for name, blob in blobs.items()
    }
    assert contents["raw-manifest"] == ("application/x-tar", [MANIFEST])
    assert contents["default-cr"] == ("application/x-tar", [DEFAULT_CR])
    assert contents["moduletemplate"][1][0].startswith(
        "apiVersion: operator.kyma-project.io/v1beta2\nkind: ModuleTemplate"
    )


def test_a_version_that_is_not_there_is_not_found(reader: GoProgram, published: dict[str, Any]) -> None:
    assert "error" in reader.ask(**(published | {"version": "9.9.9"}))
