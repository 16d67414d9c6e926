from __future__ import annotations

from typing import Any

import pytest
from tests.nodeagent.world import IMAGE, Osc, file, in_place, osc_of, service, unit

from hortus.nodeagent.osc import OscDropIn, OscError, OscFile, OscUnit, convert, decode
from hortus.nodeagent.validation import problems


def containerd(**parts: Any) -> Osc:
    return osc_of(containerd={"sandboxImage": "pause:3.10", **parts})


def registry(**parts: Any) -> Osc:
    return containerd(registries=[{"upstream": "docker.io", "hosts": [{"url": "https://mirror"}], **parts}])


def changed(osc: Osc, **spec: Any) -> Osc:
    osc["spec"].update(spec)
    return osc


BREACHES: list[tuple[Osc, str]] = [
    (changed(osc_of(), purpose="other"), "spec.purpose is 'other'"),
    (changed(containerd(), purpose="provision"), "spec.criConfig.containerd is forbidden with purpose provision"),
    (containerd(sandboxImage=""), "containerd.sandboxImage is empty"),
    (containerd(registries=[{"upstream": "a.b"}, {"upstream": "a.b"}]), "registries[1].upstream 'a.b' is there twice"),
    (registry(upstream=""), "registries[0].upstream '' is no host name"),
    (registry(upstream="Docker.io"), "registries[0].upstream 'Docker.io' is no host name"),
    (registry(upstream="docker.io:0"), "registries[0].upstream 'docker.io:0' has a port that is not one of 1 to 65535"),
    (registry(upstream="docker.io:65536"), "has a port that is not one of 1 to 65535"),
    (registry(upstream="docker.io:"), "has a port that is not one of 1 to 65535"),
    (registry(server="ftp://docker.io"), "registries[0].server 'ftp://docker.io' has another scheme"),
    (registry(server="docker.io"), "registries[0].server 'docker.io' has another scheme"),
    (registry(server="https://"), "registries[0].server 'https://' names no host"),
    (registry(hosts=[{"url": "https://"}]), "registries[0].hosts[0].url 'https://' names no host"),
    (registry(hosts=[{"url": "https://a", "capabilities": ["fly"]}]), "hosts[0].capabilities has 'fly'"),
    (containerd(plugins=[{"op": "add", "path": []}]), "plugins[0].path is empty"),
    (containerd(plugins=[{"op": "remove", "path": ["a"], "values": {}}]), "values is forbidden with op remove"),
    (containerd(plugins=[{"path": ["a"], "values": [1]}]), "plugins[0].values is not a JSON object"),
    (osc_of(units=[{"name": ""}]), "spec.units[0].name is empty"),
    (osc_of(units=[{"name": "../x.service"}]), "spec.units[0].name '../x.service' is no name of a unit"),
    (osc_of(units=[unit("a.service", dropIns=[{"name": "", "content": "x"}])]), "dropIns[0].name is empty"),
    (osc_of(units=[unit("a.service", dropIns=[{"name": "a.conf", "content": ""}])]), "dropIns[0].content is empty"),
    (osc_of(units=[unit("a.service", dropIns=[{"name": "../a", "content": "x"}])]), "is no name of a file"),
    (osc_of(units=[unit("a.service", filePaths=["/no"])]), "filePaths[0] '/no' is no file of the configuration"),
    (osc_of(extensionUnits=[{"name": ""}]), "status.extensionUnits[0].name is empty"),
    (osc_of([file("", "x")]), "spec.files[0].path is empty"),
    (osc_of([file("etc/x", "x")]), "spec.files[0].path 'etc/x' is not absolute"),
    (osc_of([file("/etc/../x", "x")]), "spec.files[0].path '/etc/../x' is not absolute"),
    (osc_of([file("/x", "x", permissions=0o10000)]), "spec.files[0].permissions 4096 is more than octal 7777"),
    (osc_of([{"path": "/x", "content": {}}]), "spec.files[0].content has 0 sources"),
    (
        osc_of([{"path": "/x", "content": {"inline": {"data": ""}, "secretRef": {"name": "a", "dataKey": "b"}}}]),
        "spec.files[0].content has 2 sources",
    ),
    (osc_of([{"path": "/x", "content": {"inline": {"encoding": "gzip", "data": ""}}}]), "encoding is 'gzip'"),
    (osc_of([{"path": "/x", "content": {"inline": {"encoding": "b64", "data": "?"}}}]), "is not valid base64"),
    (osc_of([{"path": "/x", "content": {"secretRef": {"name": "a"}}}]), "secretRef has no name or no dataKey"),
    (
        osc_of([{"path": "/x", "content": {"imageRef": {"image": IMAGE}}}]),
        "imageRef has no image or no filePathInImage",
    ),
    (osc_of([file("/x", "1", hostName="")]), "spec.files[0].hostName '' is no host name"),
    (registry(upstream="docker.io:080"), "has a port that is not one of 1 to 65535"),
    (registry(hosts=[{"url": "mirror.example.org:5000"}]), "hosts[0].url 'mirror.example.org:5000' has another scheme"),
    (in_place(osc_of(), "new", "1592.4"), "spec.inPlaceUpdates.kubelet is 'new', which is no version"),
    (in_place(osc_of(), "1.33.1", "jammy"), "spec.inPlaceUpdates.operatingSystemVersion is 'jammy', which is no ver"),
    (
        changed(osc_of(), inPlaceUpdates={"kubelet": "1.33.1"}),
        "spec.files: /var/lib/kubelet/config/kubelet is missing, and changes of the kubelet are read from it",
    ),
    (
        in_place(osc_of(), "1.33.1", "1592.4", {"evictionHard": {"memory.available": 5}}),
        "config/kubelet is no KubeletConfiguration: Expected `str`, got `int`, at `evictionHard[...]`",
    ),
    (in_place(osc_of(), "1.33.1", "1592.4", {"kind": "Pod"}), "config/kubelet is Pod of kubelet.config.k8s.io/v1beta1"),
    (
        in_place(osc_of(), "1.33.1", "1592.4", {"kubeReserved": {"cpu": "much"}}),
        "has kubeReserved.cpu 'much', which is no quantity",
    ),
    (osc_of([file("/x", "1"), file("/x", "2")]), "path '/x' is there 2 times"),
    (osc_of([file("/x", "1"), file("/x", "2", hostName="a")]), "path '/x' is there 2 times"),
    (osc_of([file("/x", "1", hostName="a"), file("/x", "2", hostName="a")]), "path '/x' is there 2 times"),
    (osc_of([file("/x", "1")], extensionFiles=[file("/x", "2")]), "path '/x' is there 2 times"),
]


@pytest.mark.parametrize(("osc", "problem"), BREACHES)
def test_each_rule_is_checked_and_names_its_field(osc: Osc, problem: str) -> None:
    found = problems(convert(osc))
    assert len(found) == 1
    assert problem in found[0]
    assert ": " in found[0], "the fix follows the problem"


@pytest.mark.parametrize(
    "osc",
    [
        osc_of(),
        registry(upstream="_default"),
        registry(upstream="docker.io:5000", server="http://docker.io"),
        registry(hosts=[{"url": "http://mirror.example.org:5000"}]),
        changed(osc_of(), purpose=""),
        in_place(osc_of(), "1.33.1", "1592.4", {"kubeReserved": {"cpu": "80m"}}),
        containerd(plugins=[{"path": ["a"], "values": {"b": 1}}, {"op": "remove", "path": ["a"]}]),
        osc_of([file("/x", "1", hostName="a"), file("/x", "2", hostName="b")]),
        osc_of([file("/x", "1")], [unit("a.service", filePaths=["/x", "/y"])], extensionFiles=[file("/y", "")]),
        osc_of(units=[unit("foo@bar.service", service()), unit("dev-sda.swap")]),
    ],
)
def test_a_configuration_that_keeps_the_rules_has_no_problems(osc: Osc) -> None:
    assert problems(convert(osc)) == []


def test_the_purpose_cannot_change_and_a_deleted_configuration_stays_as_it_is() -> None:
    before = convert(osc_of())
    purpose = problems(convert(changed(osc_of(), purpose="provision")), before=before)
    assert purpose == ["spec.purpose was 'reconcile' and cannot change to 'provision': make another configuration"]
    deleted = osc_of([file("/x", "1")])
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert problems(convert(deleted), before=before) == [
        "spec has changed although the configuration is being deleted: restore it"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty, where an OperatingSystemConfig is needed"),
        ("a: [", "is not readable YAML"),
        ("kind: Secret\n", "is of kind 'Secret', where OperatingSystemConfig is needed"),
        ("kind: OperatingSystemConfig\nspec: {units: [{name: 1}]}\n", "at `spec.units[0].name`"),
        ("kind: OperatingSystemConfig\nspec: {units: [{enable: fly}]}\n", "at `spec.units[0].enable`"),
        ("kind: OperatingSystemConfig\napiVersion: v1\n", "is of apiVersion 'v1', where extensions.gardener.cloud/v1"),
        (
            "kind: OperatingSystemConfig\nspec: {inPlaceUpdates: {kubelet: {version: 1.33.1}}}\n",
            "Expected `str`, got `object`, at `spec.inPlaceUpdates.kubelet`",
        ),
    ],
)
def test_a_text_that_is_no_configuration_is_refused_with_its_field(text: str, problem: str) -> None:
    with pytest.raises(OscError) as refused:
        decode(text)
    assert problem in str(refused.value)


def test_octal_permissions_nulls_and_defaults_are_read_as_go_reads_them() -> None:
    osc = decode(
        "kind: OperatingSystemConfig\n"
        "spec:\n  units: null\n  files:\n"
        "  - {path: /a, permissions: 0644, content: {inline: {encoding: '', data: x}}}\n"
        "  - {path: /b, permissions: null, content: {inline: {encoding: b64, data: eA==}}}\n"
    )
    first, second = osc.spec.files
    assert (first.mode, second.mode) == (0o644, 0o600)
    assert second.content.inline is not None
    assert second.content.inline.decoded() == b"x"
    assert osc.spec.units == ()


def test_units_of_an_extension_are_merged_by_name() -> None:
    osc = convert(
        osc_of(
            units=[unit("a.service", "old", enable=True, filePaths=["/x"], dropIns=[{"name": "1", "content": "1"}])],
            extensionUnits=[
                unit("a.service", command="stop", filePaths=["/y"], dropIns=[{"name": "2", "content": "2"}]),
                unit("a.service", "new", enable=False),
            ],
        )
    )
    assert osc.merged_units() == {
        "a.service": OscUnit(
            name="a.service",
            command="stop",
            enable=False,
            content="new",
            drop_ins=(OscDropIn(name="1", content="1"), OscDropIn(name="2", content="2")),
            file_paths=("/x", "/y"),
        )
    }


def test_files_of_other_hosts_are_left_out() -> None:
    osc = convert(osc_of([file("/x", "1", hostName="node-1"), file("/x", "2", hostName="node-2"), file("/y", "3")]))
    found = osc.files_for("node-2")
    assert {path: each.content.inline.data for path, each in found.items() if each.content.inline} == {
        "/x": "2",
        "/y": "3",
    }
    assert isinstance(found["/x"], OscFile)
