"""Forms for Clusters: the manifest with comments, the page, and the command that makes both."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.stacks.catalog.world import CLASSES, HOME, TEAM, CatalogWorld

from hortus.domains.stacks.capi import CLUSTERS, read_cluster
from hortus.domains.stacks.commands.forms import _form
from hortus.domains.stacks.forms.classes import ClusterForm, read_form
from hortus.domains.stacks.forms.manifest import manifest
from hortus.domains.stacks.forms.page import page
from hortus.domains.stacks.types import CLUSTER_STACK_RELEASES
from hortus.kube import Client, PatchKind, yaml
from hortus.kube.objects import Object
from hortus.terminal import CommandError

TAG = "docker-ferrol-1-27-v1"
NODES: Object = {
    "type": "object",
    "description": "Size of the nodes",
    "required": ["flavor"],
    "properties": {
        "flavor": {"type": "string", "enum": ["small", "large"]},
        "disk": {"type": "integer", "minimum": 10},
    },
}


def variable(name: str, schema: Object, *, required: bool = False) -> Object:
    return {"name": name, "required": required, "schema": {"openAPIV3Schema": schema}}


def class_of(*variables: Object, version: str = "v1beta1") -> Object:
    return {
        "apiVersion": f"cluster.x-k8s.io/{version}",
        "kind": "ClusterClass",
        "metadata": {"name": TAG, "namespace": HOME},
        "spec": {"variables": list(variables), "workers": {"machineDeployments": [{"class": "small"}]}},
    }


def form_of(*variables: Object, version: str = "v1beta1") -> ClusterForm:
    return read_form(class_of(*variables, version=version), kubernetes="v1.27.3")


def written(form: ClusterForm) -> Object:
    found: Object = yaml.load("\n".join(manifest(form, "shop", TEAM)).encode())
    return found


class Page(HTMLParser):
    """The elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def controls(self) -> dict[str, dict[str, str | None]]:
        return {found["data-path"]: found for _, found in self.found if (found.get("data-path") or "")}  # type: ignore[misc]


def test_required_variables_have_a_value_and_the_others_are_comments() -> None:
    form = form_of(
        variable("repository", {"type": "string", "default": "", "description": "The registry"}, required=True),
        variable("nodes", NODES, required=True),
        variable("mtu", {"type": "integer", "minimum": 1280, "maximum": 9000, "default": 1500}),
    )
    assert written(form) == {
        "apiVersion": "cluster.x-k8s.io/v1beta1",
        "kind": "Cluster",
        "metadata": {"name": "shop", "namespace": TEAM},
        "spec": {
            "topology": {
                "class": TAG,
                "classNamespace": HOME,
                "version": "v1.27.3",
                "controlPlane": {"replicas": 1},
                "workers": {"machineDeployments": [{"class": "small", "name": "small", "replicas": 1}]},
                "variables": [{"name": "repository", "value": ""}, {"name": "nodes", "value": {"flavor": "small"}}],
            }
        },
    }
    lines = list(manifest(form, "shop", TEAM))
    assert lines[-3:] == [
        "      # optional; integer; at least 1280; at most 9000; default 1500",
        "      # - name: mtu",
        "      #   value: 1500",
    ]
    assert "      # The registry" in lines


def test_the_form_of_v1beta2_names_the_class_by_reference() -> None:
    topology = written(form_of(version="v1beta2"))["spec"]["topology"]
    assert topology["classRef"] == {"name": TAG, "namespace": HOME}
    assert "class" not in topology
    own = form_of(version="v1beta2").topology(HOME)
    assert own == {"classRef": {"name": TAG}, "version": "v1.27.3"}


@given(text=st.text(max_size=60), name=st.text(min_size=1, max_size=20))
def test_no_text_of_a_class_leaves_its_comment_or_its_element(text: str, name: str) -> None:
    schema = {"type": "string", "description": f"a\nkind: Evil {text}</script><script>alert(1)", "default": text}
    form = form_of(variable(name, schema), variable("b", {"type": "string", "example": text}, required=True))
    assert written(form)["spec"]["topology"]["variables"] == [{"name": "b", "value": text}]
    elements = [tag for tag, _ in Page(page(form, "shop", TEAM)).found]
    assert elements.count("script") == 2


def test_each_value_has_a_control_with_the_limits_of_its_schema() -> None:
    form = form_of(
        variable("nodes", NODES, required=True),
        variable("mtu", {"type": "integer", "minimum": 1280, "default": 1500}),
        variable("zone", {"type": "string", "pattern": "^z[0-9]"}),
        variable("public", {"type": "boolean", "default": True}),
        variable("servers", {"type": "array", "items": {"type": "string"}, "default": ["9.9.9.9"]}),
    )
    text = page(form, "shop", TEAM)
    controls = Page(text).controls()
    assert {path: one["data-kind"] for path, one in controls.items()} == {
        '["nodes", "flavor"]': "string",
        '["nodes", "disk"]': "json",
        '["mtu"]': "json",
        '["zone"]': "string",
        '["public"]': "boolean",
        '["servers"]': "json",
    }
    assert (controls['["mtu"]']["min"], controls['["mtu"]']["value"]) == ("1280", "1500")
    assert controls['["zone"]']["pattern"] == ".*(?:^z[0-9]).*"
    assert "checked" in controls['["public"]']
    assert "data-needed" in controls['["nodes", "flavor"]']
    assert "data-needed" not in controls['["nodes", "disk"]']
    assert not [name for _, found in Page(text).found for name in found if name in ("src", "href", "action")]


def test_a_checkbox_has_a_value_before_it_is_touched_only_where_there_is_one() -> None:
    switches = {"type": "object", "required": ["on"], "properties": {"on": {"type": "boolean"}}}
    switches["properties"] |= {"maybe": {"type": "boolean"}, "usual": {"type": "boolean", "default": False}}
    controls = Page(page(form_of(variable("switches", switches, required=True)), "shop", TEAM)).controls()
    assert {path for path, one in controls.items() if "data-needed" in one} == {
        '["switches", "on"]',
        '["switches", "usual"]',
    }
    assert '["switches", "maybe"]' in controls


def test_a_value_that_was_no_json_is_valid_again_when_it_is_taken_out() -> None:
    _, _, script = page(form_of(), "shop", TEAM).partition("function read(control) {")
    assert 0 < script.index('control.setCustomValidity("");') < script.index("return")


class Here:
    def __init__(self, world: CatalogWorld) -> None:
        self.world = world

    @asynccontextmanager
    async def management(self) -> AsyncIterator[Client]:
        yield self.world.client


@pytest.mark.parametrize("output", ["yaml", "html"])
async def test_the_form_is_made_of_the_live_class(
    here: CatalogWorld, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    connections: Any = Here(here)
    with pytest.raises(CommandError, match="'other' is no class of a cluster stack"):
        await _form(connections, "other", HOME, "shop", TEAM, output)
    with pytest.raises(CommandError, match=f"namespace {TEAM} has no ClusterStackRelease {TAG}"):
        await _form(connections, TAG, TEAM, "shop", TEAM, output)
    await here.create(CLUSTER_STACK_RELEASES, TAG, spec={})
    with pytest.raises(CommandError, match="is not ready"):
        await _form(connections, TAG, HOME, "shop", TEAM, output)
    status = {"status": {"ready": True, "kubernetesVersion": "v1.27.3"}}
    await here.client.patch(CLUSTER_STACK_RELEASES, TAG, status, HOME, PatchKind.MERGE, "status")
    with pytest.raises(CommandError, match=f"ClusterClass {HOME}/{TAG} does not exist"):
        await _form(connections, TAG, HOME, "shop", TEAM, output)
    await here.create(CLASSES, TAG, spec=class_of(variable("nodes", NODES, required=True))["spec"])
    await _form(connections, TAG, HOME, "shop", TEAM, output)
    said = capsys.readouterr().out
    if output == "html":
        assert '["nodes", "flavor"]' in Page(said).controls()
        return
    manifest_of: Object = yaml.load(said.encode())
    resource = CLUSTERS[manifest_of["apiVersion"].rpartition("/")[2]]
    made = read_cluster(await here.client.create(resource, manifest_of))
    assert (made.class_name, made.class_namespace, made.version) == (TAG, HOME, "v1.27.3")
