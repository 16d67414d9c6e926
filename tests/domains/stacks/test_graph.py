"""The graph of stacks as a picture: well-formed, self-contained, without overlaps, failures with their reasons."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.terminal.test_escaping import HOSTILE

from hortus.domains.stacks.drawing import svg
from hortus.domains.stacks.graph import GraphEdge, GraphNode, NodeId, NodeState, StacksGraph, mermaid

SVG = "{http://www.w3.org/2000/svg}"
STACK, RELEASE = (
    NodeId("ClusterStack", "home", "ferrol"),
    NodeId("ClusterStackRelease", "home", "docker-ferrol-1-27-v1"),
)
CLUSTER, ADDON = NodeId("Cluster", "team", "shop"), NodeId("ClusterAddon", "team", "cluster-addon-shop")
HELM_RELEASE = NodeId("HelmRelease", "team", "shop-cni-0a1b2c3d")
KINDS = (
    *("ClusterStack", "OpenStackClusterStackRelease", "ClusterStackRelease", "Cluster", "ClusterAddon"),
    "HelmRelease",
)
EDGES = (
    GraphEdge(STACK, "offers", RELEASE),
    GraphEdge(CLUSTER, "uses", RELEASE),
    GraphEdge(CLUSTER, "has", ADDON),
)


def drawn(*nodes: GraphNode, edges: Sequence[GraphEdge] = ()) -> ElementTree.Element:
    return ElementTree.fromstring(svg(StacksGraph(nodes, tuple(edges))))


def texts(element: ElementTree.Element) -> list[str]:
    return [found.text or "" for found in element.iter(f"{SVG}text")]


def groups(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """The elements of nodes, by the first line of their titles."""
    return {(group.findtext(f"{SVG}title") or "").split("\n")[0]: group for group in root.iter(f"{SVG}g")}


def places(root: ElementTree.Element) -> list[tuple[float, ...]]:
    return [tuple(float(one.attrib[name]) for name in ("x", "y", "width", "height")) for one in root.iter(f"{SVG}rect")]


def overlap(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    return (
        one[0] < other[0] + other[2]
        and other[0] < one[0] + one[2]
        and one[1] < other[1] + other[3]
        and other[1] < one[1] + one[3]
    )


def test_a_failed_object_is_marked_with_its_reason_and_message() -> None:
    failed = GraphNode(ADDON, NodeState.FAILED, "FailedToApplyObjects", 'Deployment "cni" & <co>: denied')
    root = drawn(GraphNode(STACK), GraphNode(RELEASE, NodeState.WELL), GraphNode(CLUSTER), failed, edges=EDGES)
    found = groups(root)
    assert {name: group.attrib["class"] for name, group in found.items()} == {
        "ClusterStack home/ferrol": "plain",
        "ClusterStackRelease home/docker-ferrol-1-27-v1": "ready",
        "Cluster team/shop": "plain",
        "ClusterAddon team/cluster-addon-shop": "failed",
    }
    assert texts(found["ClusterAddon team/cluster-addon-shop"]) == [
        "ClusterAddon in team",
        "cluster-addon-shop",
        "failed: FailedToApplyObjects",
        'Deployment "cni" & <co>: denied',
    ]
    assert [text for text in texts(root) if text in ("offers", "uses", "has")] == ["offers", "uses", "has"]


def test_the_picture_has_no_script_and_loads_nothing() -> None:
    text = svg(
        StacksGraph((GraphNode(STACK, NodeState.FAILED, "Bad", "<script>alert(1)</script>\x1b[31m\x00\ufffe"),), ())
    )
    root = ElementTree.fromstring(text)
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        *("svg", "title", "style", "defs", "marker", "path", "g", "rect", "text")
    }
    assert not [name for element in root.iter() for name in element.attrib if name.startswith("on") or "href" in name]
    assert "url(http" not in text
    assert "@import" not in text


def test_a_name_too_long_for_its_box_is_whole_in_the_title() -> None:
    name = "a-very-long-name-" * 14 + "end"
    (group,) = groups(drawn(GraphNode(NodeId("Cluster", "team", name)))).values()
    assert group.findtext(f"{SVG}title") == f"Cluster team/{name}"
    shown = texts(group)
    assert len(shown) == 4
    assert shown[-1].endswith("…")
    assert max(map(len, shown)) <= 42


def test_relations_of_one_object_are_written_once() -> None:
    others = [NodeId("ClusterStackRelease", "home", f"docker-ferrol-1-27-v{number}") for number in range(5)]
    root = drawn(*map(GraphNode, (STACK, *others)), edges=[GraphEdge(STACK, "offers", one) for one in others])
    assert texts(root).count("offers") == 1
    assert len([path for path in root.iter(f"{SVG}path") if "marker-end" in path.attrib]) == 5


def test_helm_releases_have_a_column_of_their_own() -> None:
    edge = GraphEdge(ADDON, "by Flux", HELM_RELEASE)
    root = drawn(GraphNode(ADDON), GraphNode(HELM_RELEASE, NodeState.FAILED, "InstallFailed", "denied"), edges=[edge])
    assert [text for text in texts(root) if text.endswith(")")][-2:] == ["Addons (1)", "By Flux (1)"]
    assert "failed: InstallFailed" in texts(groups(root)["HelmRelease team/shop-cni-0a1b2c3d"])
    (addon, release) = sorted(places(root))
    assert addon[0] < release[0]
    assert float(root.attrib["width"]) >= release[0] + release[2]


def test_without_objects_the_picture_has_its_heads() -> None:
    assert texts(drawn()) == ["Stacks and providers (0)", "Releases (0)", "Clusters (0)", "Addons (0)"]


def test_the_flowchart_marks_what_waits_and_what_failed() -> None:
    nodes = (
        GraphNode(RELEASE, NodeState.WAITING, "ProcessOngoing"),
        GraphNode(ADDON, NodeState.FAILED, "FailedToApplyObjects"),
        GraphNode(STACK, NodeState.FAILED, 'not"one word'),
    )
    lines = [line.strip() for line in mermaid(StacksGraph(nodes, ()))]
    assert lines == [
        "flowchart LR",
        'n0["ClusterStackRelease<br/>home/docker-ferrol-1-27-v1<br/>waiting: ProcessOngoing"]',
        'n1["ClusterAddon<br/>team/cluster-addon-shop<br/>failed: FailedToApplyObjects"]',
        'n2["ClusterStack<br/>home/ferrol<br/>failed: not#34;one word"]',
        "classDef waiting stroke-dasharray: 4",
        "classDef failed stroke:#b3261e,stroke-width:3px",
        "class n0 waiting",
        "class n1,n2 failed",
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_no_name_is_markup_in_the_flowchart(text: str) -> None:
    at = NodeId(text, text, text)
    nodes = (GraphNode(at, NodeState.FAILED, text, text), GraphNode(RELEASE))
    _, first, *others = mermaid(StacksGraph(nodes, (GraphEdge(at, "waits for", RELEASE),)))
    label = r"[\w /.,()+=#;-]*"
    assert re.fullmatch(rf'  n0\["{label}<br/>{label}(<br/>failed: {label})?"\]', first, re.ASCII)
    assert len(others) == 5 and "  n0 -->|waits for| n1" in others


_IDS = st.builds(NodeId, st.sampled_from(KINDS), st.sampled_from(("home", "team")), st.text("ab-.1", min_size=1))
_NODES = st.builds(GraphNode, _IDS, st.sampled_from(NodeState), st.text(max_size=40), st.text(max_size=200))


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_every_object_is_drawn_once_and_none_overlap(data: st.DataObject) -> None:
    nodes = data.draw(st.lists(_NODES, unique_by=lambda one: one.id, max_size=30))
    ends = st.sampled_from([node.id for node in nodes]) if nodes else st.nothing()
    edges = data.draw(st.lists(st.builds(GraphEdge, ends, st.just("uses"), ends), max_size=30)) if nodes else []
    root = drawn(*nodes, edges=edges)
    boxes = places(root)
    assert len(boxes) == len(nodes)
    assert not [pair for pair in itertools.combinations(boxes, 2) if overlap(*pair)]
    width, height = (float(root.attrib[name]) for name in ("width", "height"))
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in boxes)
