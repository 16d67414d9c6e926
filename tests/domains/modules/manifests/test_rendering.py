"""2.2.3: from the YAML of a layer to objects."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.modules.manifests.world import Layers, config_map

from hortus.domains.modules.manifests.rendering import KEPT, BadManifest, Rendering, id_of, parse
from hortus.domains.modules.types import InstallSource
from hortus.engine import StepError
from hortus.kube import yaml
from hortus.testing import FakeClock


def test_documents_become_objects_in_their_order(upstream: Path) -> None:
    """Checks the raw manifest of the sample module of the Go system."""
    objects = parse((upstream / "klm/manifests/raw-manifest.yaml").read_bytes())
    assert [one.kind for one in map(id_of, objects)] == [
        "CustomResourceDefinition",
        "CustomResourceDefinition",
        "ServiceAccount",
        "ClusterRole",
        "ClusterRoleBinding",
        "Role",
        "RoleBinding",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterRole",
    ]


def test_the_first_of_two_objects_with_one_id_counts(upstream: Path) -> None:
    found = parse((upstream / "klm/manifests/manifest-contains-duplicate-resources.yaml").read_bytes())
    assert len(found) == 1
    assert parse(yaml.dump_all([config_map("one", a="1"), config_map("one", a="2")]).encode()) == [
        config_map("one", a="1")
    ]


def test_lists_are_flattened_at_any_depth() -> None:
    inner = {"apiVersion": "v1", "kind": "ConfigMapList", "items": [config_map("two")]}
    outer = {"apiVersion": "v1", "kind": "List", "items": [config_map("one"), inner, None]}
    assert parse(yaml.dump(outer).encode()) == [config_map("one"), config_map("two")]


def test_texts_of_the_go_system_are_accepted_and_refused_alike(upstream: Path) -> None:
    assert len(parse((upstream / "klm/manifests/valid-yaml.yaml").read_bytes())) == 2
    with pytest.raises(BadManifest, match="document 1"):
        parse((upstream / "klm/manifests/invalid-yaml.yaml").read_bytes())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- a\n", "document 1 is a list: an object with apiVersion and kind is needed"),
        ("a: 1\n---\na: [", "document 2: line"),
        ("metadata: text\n", "document 1: metadata is a str: a mapping is needed"),
        ("metadata: {labels: []}\n", "document 1: metadata.labels is a list: a mapping is needed"),
        ("kind: List\nitems: [1]\n", r"document 1, items\[0\] is a int"),
        ("a: 1\na: 2\n", "key 'a' stands twice"),
        ("a: !!python/object:os.system {}\n", "only plain data is read"),
        ("[" * 200, "nested deeper than 100 levels"),
    ],
)
def test_a_text_that_is_no_manifest_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(BadManifest, match=problem):
        parse(text.encode())


def test_a_bomb_of_aliases_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(BadManifest, match="values, aliases counted"):
        parse("\n".join(lines).encode())


def test_a_huge_manifest_is_refused_before_it_is_read() -> None:
    with pytest.raises(BadManifest, match="bytes are more than the allowed"):
        parse(b"#" * (17 << 20))
    many = yaml.dump_all([config_map(f"number-{number}") for number in range(3001)]).encode()
    with pytest.raises(BadManifest, match="more than 3000 objects: split the module"):
        parse(many)


def source(ref: str) -> InstallSource:
    return InstallSource(repo="registry.test", name="module", ref=ref, type="oci-ref")


async def test_a_layer_is_read_once_a_day_and_each_caller_gets_objects_of_its_own() -> None:
    layers, clock = Layers(), FakeClock()
    ref = layers.push(config_map("one"))
    rendering = Rendering(layers, clock=clock)
    found = await asyncio.gather(*(rendering.objects(source(ref), "raw-manifest") for _ in range(5)))
    assert layers.reads == 1
    found[0][0]["data"] = {"changed": "yes"}
    assert found[1] == [config_map("one")]
    assert await rendering.objects(source(ref), "raw-manifest") == [config_map("one")]
    await rendering.objects(source(ref), "other")
    assert layers.reads == 2
    await clock.advance(KEPT)
    await rendering.objects(source(ref), "raw-manifest")
    assert layers.reads == 3


async def test_an_evicted_layer_is_read_again_and_a_full_memory_forgets_the_oldest() -> None:
    layers = Layers()
    one, two = layers.push(config_map("one")), layers.push(config_map("two"))
    rendering = Rendering(layers, clock=FakeClock(), memory=150)
    for ref in (one, one, two, one):
        await rendering.objects(source(ref), "raw-manifest")
    assert layers.reads == 3
    rendering.evict(source(one), "raw-manifest")
    await rendering.objects(source(one), "raw-manifest")
    assert layers.reads == 4


async def test_an_unreadable_layer_names_component_layer_and_fix() -> None:
    layers = Layers()
    ref = layers.push_text(b"- a\n")
    with pytest.raises(StepError, match=f"layer {ref} of component module: document 1 is a list.*publish a version"):
        await Rendering(layers, clock=FakeClock()).objects(source(ref), "raw-manifest")


_names = st.sampled_from(["one", "two", "three"])
_trees: Any = st.recursive(
    _names.map(config_map),
    lambda inner: st.lists(inner, max_size=4).map(lambda items: {"apiVersion": "v1", "kind": "List", "items": items}),
    max_leaves=12,
)


def leaves(tree: Any) -> list[Any]:
    return [leaf for item in tree["items"] for leaf in leaves(item)] if tree["kind"] == "List" else [tree]


@given(st.lists(_trees, max_size=4))
def test_parsing_keeps_the_first_of_each_id_in_order(trees: list[Any]) -> None:
    expected = dict.fromkeys(leaf["metadata"]["name"] for tree in trees for leaf in leaves(tree))
    assert [id_of(obj).name for obj in parse(yaml.dump_all(trees).encode())] == list(expected)
