"""`hortus stack publish`, and mode stable against what is published."""

from __future__ import annotations

import asyncio
from pathlib import Path

import orjson
import pytest
from tests.domains.stacks.publishing.conftest import Loop, StackFolder

from hortus.domains.stacks.names import parse_tag
from hortus.domains.stacks.publishing.config import read_stack_config
from hortus.domains.stacks.publishing.versions import latest_stable
from hortus.kube import yaml
from hortus.render.artifacts import TransferSettings
from hortus.render.oci import ImageManifest, OciClient, OciSettings, parse_reference
from hortus.simulation.registry import RegistryServer
from hortus.simulation.releases import GitHubServer

NAME = "docker-ferrol-1-27-v1"
LAYERS = {
    "cluster-addon-values.yaml": "application/vnd.oci.image.layer.v1.tar",
    "docker-ferrol-1-27-cluster-addon-v1.tgz": "application/vnd.scs.cluster-addon.layer.v1.tar+gzip",
    "docker-ferrol-1-27-cluster-class-v1.tgz": "application/vnd.scs.cluster-class.v1.tar+gzip",
    "hashes.json": "application/vnd.scs.hashes.layer.v1+yaml",
    "metadata.yaml": "application/vnd.scs.metadata.layer.v1+yaml",
}


def _manifest(registry: RegistryServer, tag: str) -> ImageManifest:
    async def read() -> ImageManifest:
        hosts = frozenset((registry.address,))
        settings = OciSettings(transfer=TransferSettings(plain_http=hosts, local_hosts=hosts))
        async with OciClient(settings=settings) as client:
            return await client.image(parse_reference(f"{registry.address}/team/stacks:{tag}"))

    return asyncio.run(read())


def _create(folder: StackFolder, *more: str) -> str:
    return folder.type("create", "stack", "--remote", "oci", "--publish", *more).output


def _versions(folder: StackFolder, name: str) -> dict[str, object]:
    found: dict[str, object] = yaml.load((folder.release(name) / "metadata.yaml").read_bytes())["versions"]
    return found


def test_a_release_is_one_artifact_with_a_layer_for_each_file(folder: StackFolder, registry: RegistryServer) -> None:
    output = _create(folder)
    assert f"Created .release/{NAME}" in output
    assert f"Published {registry.address}/team/stacks:{NAME}" in output
    manifest = _manifest(registry, NAME)
    titles = {layer.annotations["org.opencontainers.image.title"]: layer.media_type for layer in manifest.layers}
    assert titles == LAYERS
    assert manifest.artifact_type == "application/vnd.scs.cluster-stacks.v1"
    hashes = orjson.loads((folder.release(NAME) / "hashes.json").read_bytes())
    assert manifest.annotations == {
        "kubernetesVersion": "v1.27.7",
        "hash": hashes["clusterStack"][:7],
        "org.opencontainers.image.created": "2023-11-14T22:13:20Z",
    }


def test_a_published_release_passes_the_checks(folder: StackFolder, registry: RegistryServer) -> None:
    _create(folder)
    assert f"{NAME} is complete: 5 files" in folder.type("verify", NAME, "--remote", "oci", "--stack", "stack").output


def test_a_name_that_is_taken_is_left_as_it_is(folder: StackFolder, registry: RegistryServer) -> None:
    _create(folder)
    there = _manifest(registry, NAME).digest
    again = folder.type("publish", f".release/{NAME}").output
    assert f"{NAME} is published already; nothing was changed" in again
    assert "warning" not in again
    (folder.release(NAME) / "cluster-addon-values.yaml").write_text("values: {}\n")
    assert "warning: other files are published under this name" in folder.type("publish", f".release/{NAME}").output
    assert _manifest(registry, NAME).digest == there


def test_stable_versions_follow_the_parts_that_changed(folder: StackFolder, registry: RegistryServer) -> None:
    _create(folder)
    assert _versions(folder, NAME)["components"] == {"clusterAddon": "v1", "nodeImage": "v1"}
    folder.write("cluster-addon/values.yaml", "a: 1\n")
    assert f"Latest release: {NAME}" in _create(folder)
    assert _versions(folder, "docker-ferrol-1-27-v2")["components"] == {"clusterAddon": "v2", "nodeImage": "v1"}
    folder.write("node-image/packer.hcl", "")
    _create(folder)
    assert _versions(folder, "docker-ferrol-1-27-v3")["components"] == {"clusterAddon": "v2", "nodeImage": "v2"}


def test_a_change_of_the_class_alone_counts(folder: StackFolder, registry: RegistryServer) -> None:
    """D21: csctl refuses it."""
    _create(folder)
    folder.write("cluster-class/values.yaml", "a: 1\n")
    _create(folder)
    found = _versions(folder, "docker-ferrol-1-27-v2")
    assert (found["clusterStack"], found["components"]) == ("v2", {"clusterAddon": "v1", "nodeImage": "v1"})


def test_a_stack_that_has_not_changed_is_refused(folder: StackFolder, registry: RegistryServer) -> None:
    _create(folder)
    output = folder.refused("create", "stack", "--remote", "oci")
    assert f"the stack has not changed since {NAME}" in output


def test_a_published_release_without_hashes_is_named(folder: StackFolder, registry: RegistryServer) -> None:
    folder.type("create", "stack", "-m", "custom", *CUSTOM)
    (folder.release(NAME) / "hashes.json").unlink()
    folder.type("publish", f".release/{NAME}")
    assert f"the latest release {NAME} has no hashes.json" in folder.refused("create", "stack", "--remote", "oci")


CUSTOM = ("--cluster-stack-version", "v1", "--cluster-addon-version", "v1", "--node-image-version", "v1")


def test_foreign_names_in_a_remote_are_skipped_with_a_warning(folder: StackFolder, registry: RegistryServer) -> None:
    _create(folder)
    stored = registry.folder.manifest("team/stacks", NAME)
    assert stored is not None
    registry.folder.put_manifest("team/stacks", stored.raw, stored.media_type, tag="nightly")
    folder.write("cluster-class/values.yaml", "a: 1\n")
    assert "warning: 'nightly' in the remote is no name of a release and is skipped" in _create(folder)


def test_only_stable_releases_of_the_same_series_are_followed(folder: StackFolder) -> None:
    config = read_stack_config((folder.path / "stack" / "csctl.yaml").read_bytes(), "csctl.yaml")
    names = ["docker-ferrol-1-27-v9", "docker-ferrol-1-27-v10", "docker-ferrol-1-28-v11", "docker-other-1-27-v12"]
    names += ["docker-ferrol-1-27-v13-alpha-1", "latest", "docker-ferrol-1-27-v0-sha-abcdefg"]
    assert latest_stable(names, config) == (parse_tag("docker-ferrol-1-27-v10"), ["latest"])
    assert latest_stable([], config) == (None, [])


@pytest.mark.parametrize(
    ("variable", "value", "problem"),
    [
        ("OCI_REPOSITORY", "", "OCI_REPOSITORY is not set"),
        ("OCI_REPOSITORY", "team/stacks", "OCI_REPOSITORY: 'team/stacks' names no registry"),
        ("OCI_PASSWORD", "", "no credentials for the registry: set OCI_ACCESS_TOKEN"),
        ("OCI_PASSWORD", "wrong-password", "check the credentials for this registry"),
    ],
)
def test_a_registry_that_cannot_be_used_is_explained(
    folder: StackFolder, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch, variable: str, value: str,
    problem: str,
) -> None:  # fmt: skip
    folder.type("create", "stack", "-m", "custom", *CUSTOM)
    monkeypatch.setenv(variable, value)
    output = folder.refused("publish", f".release/{NAME}")
    assert problem in output
    assert "password" not in output.replace("OCI_PASSWORD", "")


def test_a_registry_that_is_down_is_named(folder: StackFolder, registry: RegistryServer, loop: Loop) -> None:
    loop.run(registry.__aexit__())
    assert f"{registry.address}: cannot be reached" in folder.refused("verify", NAME, "--remote", "oci")


def test_a_folder_that_is_no_release_is_not_published(folder: StackFolder, registry: RegistryServer) -> None:
    Path("docker").mkdir()
    assert "docker: is no release" in folder.refused("publish", "docker")
    assert "GIT_ORG_NAME and GIT_REPOSITORY_NAME are not set" in folder.refused("create", "stack")
    assert "add --remote oci" in folder.refused("create", "stack", "--publish")


def test_stable_versions_follow_the_releases_on_github(folder: StackFolder, github: GitHubServer) -> None:
    """The list has a release a page, and a draft that does not count."""
    assert "Latest release: none" in folder.type("create", "stack", "-o", "releases").output
    (github.folder / "nightly").mkdir()
    (github.folder / "docker-ferrol-1-27-v7").mkdir()
    github.drafts.add("docker-ferrol-1-27-v7")
    folder.write("cluster-class/values.yaml", "a: 1\n")
    output = folder.type("create", "stack").output
    assert f"Latest release: {NAME}" in output
    assert "warning: 'nightly' in the remote" in output
    assert _versions(folder, "docker-ferrol-1-27-v2")["components"] == {"clusterAddon": "v1", "nodeImage": "v1"}
    assert f"{NAME} is complete" in folder.type("verify", NAME).output


def test_a_github_that_refuses_the_token_is_explained(
    folder: StackFolder, github: GitHubServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_ACCESS_TOKEN", "another-long-token")
    output = folder.refused("create", "stack")
    assert "does not accept the token" in output
    assert "another-long-token" not in output
