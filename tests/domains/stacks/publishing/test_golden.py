"""Releases made of upstream's stacks, compared with what csctl made of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.domains.stacks.publishing.conftest import StackFolder

from hortus.domains.stacks.publishing.building import build_release, read_stack
from hortus.domains.stacks.publishing.hashes import stack_hashes
from hortus.domains.stacks.publishing.versions import StackVersions, following
from hortus.render.archive import Folder, read_archive

FERROL = "cso/stacks/csctl-tests/docker/ferrol"


def test_hashes_are_csctl_s(upstream: Path) -> None:
    """A14: vectors of csctl's own test stack, and of one with several charts."""
    assert stack_hashes(Folder(upstream / FERROL).tree()).document() == (
        b'{\n  "clusterStack": "zceco7ologi0wcj1dc5wbiumgj8emk7hwayrntyk4q",\n'
        b'  "clusterAddonDir": "ctb3cmas3snyfa1mmmvowgbo0cbxkxzx8q5gwt3nm4",\n'
        b'  "clusterAddonValues": "j71tzosc6zyikpor5cte2osxwazzxod0qpcjuh5y0pe"\n}'
    )
    staged = stack_hashes(Folder(upstream / "cso/stacks/openstack/scs2").tree())
    assert staged.cluster_addon_dir == "nyri1zqevggdxycpit5d14z5s9jiejevrtol6v39i"
    assert json.loads(staged.document())["clusterAddonValues"] == ""


def test_hash_mode_names_the_release_by_the_hash(upstream: Path, folder: StackFolder) -> None:
    folder.type("create", str(upstream / FERROL), "--mode", "hash")
    release = folder.release("docker-ferrol-1-27-v0-sha-zceco7o")
    assert sorted(path.name for path in release.iterdir()) == [
        "cluster-addon-values.yaml",
        "docker-ferrol-1-27-cluster-addon-v0-sha.zceco7o.tgz",
        "docker-ferrol-1-27-cluster-class-v0-sha.zceco7o.tgz",
        "hashes.json",
        "metadata.yaml",
    ]
    assert (release / "metadata.yaml").read_text() == (
        "apiVersion: metadata.clusterstack.x-k8s.io/v1alpha1\nversions:\n    clusterStack: v0-sha.zceco7o\n"
        "    kubernetes: v1.27.7\n    components:\n        clusterAddon: v0-sha.zceco7o\n"
        "        nodeImage: v0-sha.zceco7o\n"
    )
    assert (release / "cluster-addon-values.yaml").read_bytes() == (
        b"values: |\n  metrics-server:\n    commonLabels:\n"
        b'      domain: "{{ .Cluster.spec.controlPlaneEndpoint.host }}"\n      clusterAddonVersion: "v0-sha.zceco7o"\n'
    )
    folder.type("verify", str(release), "--stack", str(upstream / FERROL))


@pytest.mark.parametrize("part", ["cluster-class", "cluster-addon"])
def test_the_files_in_a_chart_are_those_that_csctl_packed(upstream: Path, part: str) -> None:
    """Upstream's release v2 of this stack: all files, Chart.yaml as Helm writes it again, sub-charts with theirs."""
    stack = read_stack(upstream / FERROL)
    versions = StackVersions(cluster_stack="v2", kubernetes="v1.27.3", cluster_addon="v2", node_image="v1")
    file = f"docker-ferrol-1-27-{part}-v2.tgz"
    made = read_archive(build_release(stack, versions).files[file])
    theirs = read_archive((upstream / "cso/releases/docker-ferrol-1-27-v2" / file).read_bytes())
    assert {path: found.data for path, found in made.items()} == {path: found.data for path, found in theirs.items()}


def test_stages_are_packed_without_a_folder_around_them(upstream: Path) -> None:
    stack = read_stack(upstream / "cso/stacks/openstack/scs2")
    built = build_release(stack, following(stack.config, stack.hashes, None))
    assert sorted(built.files) == [
        "clusteraddon.yaml",
        "hashes.json",
        "metadata.yaml",
        "openstack-scs2-1-34-cluster-addon-v1.tgz",
        "openstack-scs2-1-34-cluster-class-v1.tgz",
    ]
    addon = read_archive(built.files["openstack-scs2-1-34-cluster-addon-v1.tgz"])
    assert addon["cni/Chart.yaml"].data == stack.files["cluster-addon/cni/Chart.yaml"].data
    assert built.files["clusteraddon.yaml"] == stack.files["clusteraddon.yaml"].data


def test_the_same_stack_gives_the_same_bytes(upstream: Path) -> None:
    stack = read_stack(upstream / FERROL)
    versions = following(stack.config, stack.hashes, None)
    assert build_release(stack, versions).files == build_release(read_stack(upstream / FERROL), versions).files


def test_upstream_s_own_releases_pass_the_checks(upstream: Path, folder: StackFolder) -> None:
    for name in ("docker-ferrol-1-27-v1", "docker-ferrol-1-27-v2"):
        found = folder.type("verify", str(upstream / "cso/releases" / name)).output
        assert f"{name} is complete" in found
        assert "hashes.json: is missing" in found
