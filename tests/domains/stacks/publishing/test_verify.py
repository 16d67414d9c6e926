"""`hortus stack verify`: each check finds its problem."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from tests.domains.stacks.publishing.conftest import STAGES, StackFolder
from tests.domains.stacks.publishing.test_publish import CUSTOM, NAME

from hortus.domains.stacks.publishing.building import build_release, read_stack
from hortus.domains.stacks.publishing.verifying import verify
from hortus.domains.stacks.publishing.versions import following, hashed
from hortus.render.archive import File, Tree, pack_tgz, read_archive

Files = dict[str, bytes]
CLASS, ADDON = "docker-ferrol-1-27-cluster-class-v1.tgz", "docker-ferrol-1-27-cluster-addon-v1.tgz"
GATE = {"key": "gate", "apiVersion": "v1", "kind": "ConfigMap", "name": "gate", "namespace": "default"}
UNKNOWN = "objects[].key names these variables: gate"


def _files(folder: StackFolder) -> Files:
    stack = read_stack(folder.path / "stack")
    return dict(build_release(stack, following(stack.config, stack.hashes, None)).files)


def _replaced(archive: bytes, path: str, data: str) -> bytes:
    found = dict(read_archive(archive).items())
    return pack_tgz(Tree({**found, path: File(data.encode())}))


def _metadata(old: str, new: str) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        files["metadata.yaml"] = files["metadata.yaml"].replace(old.encode(), new.encode())

    return change


def _put(name: str, data: bytes) -> Callable[[Files], None]:
    return lambda files: files.update({name: data})


def _template(text: str) -> Callable[[Files], None]:
    path = "docker-ferrol-1-27-cluster-class/templates/class.yaml"
    return lambda files: files.update({CLASS: _replaced(files[CLASS], path, text)})


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (_metadata("clusterStack: v1", "clusterStack: v2"), "metadata.yaml: versions.clusterStack: is 'v2'; the"),
        (_metadata("v1.27.7", "v1.28.0"), "versions.kubernetes: is 'v1.28.0'; the release is called"),
        (_metadata("v1.27.7", "latest"), "metadata.yaml: versions.kubernetes: Kubernetes version 'latest' does not"),
        (_metadata("clusterAddon: v1", "clusterAddon: '1'"), "versions.components.clusterAddon: version '1' does not"),
        (_put("metadata.yaml", b"versions: ["), "metadata.yaml: line "),
        (lambda files: files.pop("metadata.yaml"), "metadata.yaml: is missing from the release, which holds cluster-"),
        (lambda files: files.pop(CLASS), f"{CLASS}: is missing from the release"),
        (lambda files: files.pop(ADDON), f"{ADDON}: is missing from the release"),
        (lambda files: files.pop("cluster-addon-values.yaml"), "cluster-addon-values.yaml: is missing"),
        (_put("hashes.json", b"{"), "hashes.json: cannot be read"),
        (_put(CLASS, b"no archive"), f"chart {CLASS} is not a gzipped archive"),
        (_template("{{ fail \"no\" }}"), "does not render with its own values"),
        (_template("a: b"), f"{CLASS}:"),
        (_template("kind: ClusterClass\napiVersion: a/v1\nmetadata: {name: other}"), "the ClusterClasses other"),
        (_put("cluster-addon-values.yaml", b"a: {{ .Cluster"), "cannot be used as a template of values"),
        (_put("cluster-addon-values.yaml", b'a: {{ env "OCI_PASSWORD" }}'), "cannot be used as a template of values"),
        (_put("cluster-addon-values.yaml", b"\xff"), "cluster-addon-values.yaml: is not UTF-8"),
    ],
)  # fmt: skip
def test_each_fault_of_a_release_is_named(folder: StackFolder, change: Callable[[Files], object], problem: str) -> None:
    files = _files(folder)
    assert verify(NAME, files).problems == ()
    change(files)
    assert any(problem in found for found in verify(NAME, files).problems), verify(NAME, files).problems


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("name: cni", "name: csi", "has no folder 'csi'"),
        ("action: apply", "action: install", "addonStages.AfterControlPlaneInitialized[0].action: is 'install'; use"),
        ("AfterControlPlaneInitialized", "AfterLunch", "addonStages: 'AfterLunch' is no hook; use AfterControlPlane"),
        (STAGES, "addonStages: {}", "addonStages: has no stages"),
        (STAGES, "addonStages: [1]", "clusteraddon.yaml.addonStages: must be a mapping"),
        (STAGES, "{", "clusteraddon.yaml: line 2:"),
    ],
)
def test_each_fault_of_stages_is_named(folder: StackFolder, old: str, new: str, problem: str) -> None:
    folder.stage()
    files = _files(folder)
    assert verify(NAME, files).problems == ()
    files["clusteraddon.yaml"] = files["clusteraddon.yaml"].replace(old.encode(), new.encode())
    assert any(problem in found for found in verify(NAME, files).problems), verify(NAME, files).problems


@pytest.mark.parametrize(
    ("side", "condition", "problem"),
    [
        ("waitForPreCondition", {"conditions": "gate.data ==", "objects": [GATE]}, "conditions: 'gate.data =='"),
        (
            "waitForPostCondition",
            {"conditions": "door.data", "objects": [GATE]},
            "objects[].key names these variables: gate",
        ),
        ("waitForPostCondition", {"conditions": "'yes'"}, "conditions: \"'yes'\""),
        ("waitForPreCondition", {"conditions": "true", "timeout": "soon"}, "timeout: "),
        ("waitForPreCondition", {"conditions": "true", "objects": [{**GATE, "key": "a-b"}]}, "objects[0].key: 'a-b'"),
    ],
)
def test_a_condition_that_does_not_compile_is_named(
    folder: StackFolder, side: str, condition: dict[str, object], problem: str
) -> None:
    folder.stage()
    files = _files(folder)
    stage = {"name": "cni", "action": "apply", side: {"conditions": "has(gate.data)", "objects": [GATE]}}
    files["clusteraddon.yaml"] = orjson.dumps({"addonStages": {"BeforeClusterUpgrade": [stage]}})
    assert verify(NAME, files).problems == ()
    files["clusteraddon.yaml"] = orjson.dumps({"addonStages": {"BeforeClusterUpgrade": [{**stage, side: condition}]}})
    (found,) = verify(NAME, files).problems
    assert found.startswith(f"clusteraddon.yaml: addonStages.BeforeClusterUpgrade[0].{side}.")
    assert problem in found


def test_an_addon_archive_that_leaves_its_folder_is_refused(folder: StackFolder) -> None:
    folder.stage()
    files = _files(folder)
    import io
    import tarfile

    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        tar.addfile(tarfile.TarInfo("../outside"))
    found = verify(NAME, files | {ADDON: packed.getvalue()})
    assert found.problems == (f"{ADDON}: entry '../outside': climbs out of its folder with '..'",)


def test_charts_whose_dependencies_are_missing_are_reported_as_not_rendered(folder: StackFolder) -> None:
    folder.stage()
    dependency = "dependencies: [{name: cilium, version: 1.18.9, repository: 'https://helm.cilium.io'}]\n"
    folder.write("cluster-addon/cni/Chart.yaml", f"apiVersion: v2\nname: cni\nversion: v1\n{dependency}")
    found = verify(NAME, _files(folder))
    assert found.problems == ()
    assert found.remarks == (
        f"{ADDON}/cni: not rendered: its dependencies are not in charts/, and nothing fetches them: cilium 1.18.9",
    )


def test_a_hash_release_of_other_sources_is_found(folder: StackFolder) -> None:
    stack = read_stack(folder.path / "stack")
    built = build_release(stack, hashed(stack.config, stack.hashes))
    assert verify(built.name.tag, built.files).problems == ()
    folder.write("cluster-class/values.yaml", "a: 1\n")
    other = read_stack(folder.path / "stack").hashes
    (problem,) = verify(built.name.tag, {**built.files, "hashes.json": other.document()}).problems
    assert "it was made of other sources" in problem
    (problem,) = verify(built.name.tag, built.files, source=other).problems
    assert problem == "hashes.json: differs from the hashes of the stack in cluster_stack"


def test_a_name_that_is_none_is_refused(folder: StackFolder) -> None:
    assert verify("docker-ferrol", {}).problems[0].startswith("release name 'docker-ferrol' does not have the form")


def test_problems_end_the_command_with_one_line_each(folder: StackFolder) -> None:
    folder.type("create", "stack", "-m", "custom", *CUSTOM)
    (folder.release(NAME) / CLASS).unlink()
    hashes = folder.release(NAME) / "hashes.json"
    hashes.write_bytes(orjson.dumps(orjson.loads(hashes.read_bytes()) | {"clusterStack": "x"}))
    output = folder.refused("verify", str(Path(".release") / NAME), "--stack", "stack")
    assert f"error: {NAME}: hashes.json: differs from the hashes of the stack in cluster_stack" in output
    assert f"\n{NAME}: {CLASS}: is missing from the release" in output
