"""`hortus stack create`: modes, placeholders, plugins, and stacks that are refused."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from tests.domains.stacks.publishing.conftest import CONFIG, FILES, StackFolder, chart

from hortus.kube import yaml
from hortus.render.archive import read_archive

CUSTOM = ("--cluster-stack-version", "v3", "--cluster-addon-version", "v2", "--node-image-version", "v1-alpha.1")
PLUGIN = """#!/bin/sh
printf '%s\\n' "$@" > arguments
echo "openStackNodeImages: []" > "$3/node-images.yaml"
"""


def _custom(folder: StackFolder, *more: str) -> Path:
    folder.type("create", "stack", "-m", "custom", *CUSTOM, *more)
    return folder.release("docker-ferrol-1-27-v3")


def _class_files(release: Path) -> dict[str, bytes]:
    archive = read_archive((release / "docker-ferrol-1-27-cluster-class-v3.tgz").read_bytes())
    return {path: file.data for path, file in archive.items()}


def test_custom_versions_are_taken_as_they_are(folder: StackFolder) -> None:
    release = _custom(folder)
    assert yaml.load((release / "metadata.yaml").read_bytes())["versions"] == {
        "clusterStack": "v3",
        "kubernetes": "v1.27.7",
        "components": {"clusterAddon": "v2", "nodeImage": "v1-alpha.1"},
    }
    assert (release / "docker-ferrol-1-27-cluster-addon-v2.tgz").is_file()


def test_placeholders_are_filled_in_all_files_of_a_chart(folder: StackFolder) -> None:
    folder.write("cluster-class/values.yaml", "images: << .NodeImageVersion >>\nstack: << .ClusterClassVersion >>\n")
    files = _class_files(_custom(folder))
    assert files["docker-ferrol-1-27-cluster-class/values.yaml"] == b"images: v1-alpha.1\nstack: v3\n"
    assert files["docker-ferrol-1-27-cluster-class/Chart.yaml"] == (
        b"apiVersion: v2\nname: docker-ferrol-1-27-cluster-class\ntype: application\nversion: v3\n"
    )


def test_an_unknown_placeholder_becomes_empty_with_a_warning(folder: StackFolder) -> None:
    folder.write("cluster-class/values.yaml", "a: <<.ClusterClassVersion>> << .Other >>|\n")
    output = folder.type("create", "stack", "-m", "hash").output
    assert "warning: stack/cluster-class/values.yaml: '<< .Other >>' is no known placeholder" in output
    (release,) = (folder.path / ".release").iterdir()
    (archive,) = release.glob("*cluster-class*")
    found = read_archive(archive.read_bytes())["docker-ferrol-1-27-cluster-class/values.yaml"]
    assert found.data == b"a: <<.ClusterClassVersion>> |\n"


def test_helmignore_leaves_files_out(folder: StackFolder) -> None:
    folder.write("cluster-class/.helmignore", "*.md\nnotes/\n")
    folder.write("cluster-class/README.md", "x")
    folder.write("cluster-class/notes/deep/a.txt", "x")
    names = {path.partition("/")[2] for path in _class_files(_custom(folder))}
    assert names == {".helmignore", "Chart.yaml", "templates/class.yaml"}


def test_all_problems_of_a_config_are_reported_at_once(folder: StackFolder) -> None:
    folder.write("csctl.yaml", "config: {kubernetesVersion: '1.27', clusterStackName: a-b, provider: {type: Docker}}")
    assert folder.refused("create", "stack", "-m", "hash") == (
        "error: stack/csctl.yaml: config.kubernetesVersion: is '1.27'; write it with v and patch, as v1.27.7\n"
        "stack/csctl.yaml: config.clusterStackName: is 'a-b'; use small letters and digits, since '-' separates the "
        "parts of a release's name\n"
        "stack/csctl.yaml: config.provider.type: is 'Docker'; use small letters and digits, as openstack\n"
    )


@pytest.mark.parametrize(
    ("file", "text", "problem"),
    [
        ("csctl.yaml", "config: [", "stack/csctl.yaml: line "),
        ("csctl.yaml", "config: {provider: 3}", "stack/csctl.yaml: config.provider: must be a mapping, and is"),
        ("csctl.yaml", "config:", "config.kubernetesVersion: is missing"),
        ("cluster-class/values.yaml", "\n<< .ClusterClassVersion", "line 2: a placeholder begins with '<< '"),
        ("cluster-class/Chart.yaml", chart("docker-ferrol-1-28-cluster-class"), "write 'docker-ferrol-1-27-cluster"),
        ("cluster-class/Chart.yaml", "[]", "cluster-class: Chart.yaml: is not a mapping of keys"),
        ("cluster-class/Chart.yaml", "{", "stack/cluster-class: Chart.yaml: "),
        ("cluster-class/Chart.yaml", "type: no\nname: docker-ferrol-1-27-cluster-class", "type must be application or"),
        ("cluster-addon/Chart.yaml", chart("docker-ferrol-1-27-cluster-addon") + "dependencies:\n- {name: web, "
         "version: 1.0.0, repository: https://charts.example.com}\n", "charts/ lacks the dependencies web 1.0.0"),
        ("cluster-class/.helmignore", "a/**\n", "double-star (**) syntax is not supported"),
    ],
)  # fmt: skip
def test_a_stack_that_cannot_become_a_release_is_refused(
    folder: StackFolder, file: str, text: str, problem: str
) -> None:
    folder.write(file, text)
    assert problem in folder.refused("create", "stack", "-m", "custom", *CUSTOM)
    assert not (folder.path / ".release").exists()


@pytest.mark.parametrize(
    ("file", "problem"),
    [
        ("csctl.yaml", "stack: has no csctl.yaml"),
        ("cluster-class/Chart.yaml", "stack/cluster-class: has no Chart.yaml"),
        ("cluster-addon-values.yaml", "stack/cluster-addon-values.yaml: is missing; write one, or clusteraddon.yaml"),
    ],
)
def test_a_missing_file_is_named(folder: StackFolder, file: str, problem: str) -> None:
    folder.remove(file)
    assert problem in folder.refused("create", "stack", "-m", "hash")


def test_a_folder_that_is_not_there_is_named(folder: StackFolder) -> None:
    assert "nothing cannot be read: No such file" in folder.refused("create", "nothing", "-m", "hash")


def test_a_link_in_a_stack_is_refused(folder: StackFolder) -> None:
    (folder.path / "stack" / "cluster-class" / "secret").symlink_to("/etc/hostname")
    assert "cluster-class/secret': is a symbolic link" in folder.refused("create", "stack", "-m", "hash")


def test_versions_of_mode_custom_are_required_and_checked(folder: StackFolder) -> None:
    options = ("--cluster-stack-version", "v1-alpha", "--cluster-addon-version", "v1")
    output = folder.refused("create", "stack", "-m", "custom", *options)
    assert "--cluster-stack-version: version 'v1-alpha' does not have the form v1 or v1-alpha.1" in output
    assert "--node-image-version: is missing" in output


def test_a_stage_without_a_chart_is_refused(folder: StackFolder) -> None:
    folder.stage()
    folder.write("cluster-addon/csi/values.yaml", "{}")
    assert "stack/cluster-addon/csi: has no Chart.yaml" in folder.refused("create", "stack", "-m", "hash")


class Plugin:
    """A provider's plugin in the current folder, for a stack that needs one."""

    def __init__(self, folder: StackFolder) -> None:
        self.path = folder.path / "csctl-docker"
        folder.write("csctl.yaml", CONFIG + "    config: {method: get}\n")
        self.write(PLUGIN)

    def write(self, text: str) -> None:
        self.path.write_text(text)
        self.path.chmod(self.path.stat().st_mode | stat.S_IXUSR)


def test_the_plugin_of_the_provider_makes_the_node_images(folder: StackFolder) -> None:
    Plugin(folder)
    release = _custom(folder, "--node-image-registry", "oci://registry.example.com/images")
    assert (release / "node-images.yaml").read_text() == "openStackNodeImages: []\n"
    command, stack, output, registry = (folder.path / "arguments").read_text().splitlines()
    assert (command, stack, registry) == ("create-node-images", "stack", "oci://registry.example.com/images")
    assert Path(output).name == "docker-ferrol-1-27-v3"


def test_a_plugin_that_fails_leaves_the_former_release(folder: StackFolder) -> None:
    plugin = Plugin(folder)
    release = _custom(folder)
    former = {path.name: path.read_bytes() for path in release.iterdir()}
    plugin.write("#!/bin/sh\nexit 3\n")
    folder.write("cluster-class/values.yaml", "changed: true\n")
    assert "failed with exit code 3" in folder.refused("create", "stack", "-m", "custom", *CUSTOM)
    assert {path.name: path.read_bytes() for path in release.iterdir()} == former
    assert [path.name for path in (folder.path / ".release").iterdir()] == [release.name]


def test_a_plugin_that_is_missing_or_no_program_is_named(folder: StackFolder) -> None:
    plugin = Plugin(folder)
    plugin.path.chmod(0o600)
    assert "cannot be started: Permission denied" in folder.refused("create", "stack", "-m", "hash")
    plugin.path.unlink()
    assert "needs the plugin csctl-docker" in folder.refused("create", "stack", "-m", "hash")


def test_no_plugin_is_called_without_a_config_of_the_provider(folder: StackFolder) -> None:
    Plugin(folder)
    folder.write("csctl.yaml", FILES["csctl.yaml"])
    _custom(folder)
    assert not (folder.path / "arguments").exists()
