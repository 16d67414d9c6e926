"""`hortus module build` and `scaffold`: the files that modulectl writes."""

from __future__ import annotations

from pathlib import Path

import msgspec
from tests.domains.modules.publishing.conftest import DEFAULT_CR, MANIFEST, ModuleFolder

from hortus.domains.modules.registry.descriptors import parse_descriptor
from hortus.domains.modules.registry.layers import descriptor_file, manifest_of
from hortus.domains.modules.types import ModuleReleaseMeta, ModuleTemplate
from hortus.engine import read
from hortus.kube import yaml
from hortus.schema import Structural, crd

V1 = {"version": "v1"}


def test_the_template_is_modulectl_s(folder: ModuleFolder) -> None:
    """Contract 4.2: template.yaml; a whole object."""
    folder.write(
        beta=True,
        labels={"team": "hello"},
        annotations={"operator.kyma-project.io/doc-url": "https://example.com"},
        manager={"name": "hello", "namespace": "kyma-system", "group": "apps", "version": "v1", "kind": "Deployment"},
        associatedResources=[{"group": "operator.kyma-project.io", "version": "v1alpha1", "kind": "Hello"}],
        requiresDowntime=True,
        resources={"more": "https://example.com/more.yaml"},
    )
    folder.type("build")
    assert folder.document("template.yaml") == {
        "apiVersion": "operator.kyma-project.io/v1beta2",
        "kind": "ModuleTemplate",
        "metadata": {
            "name": "hello-1.0.3",
            "namespace": "",
            "labels": {
                "team": "hello",
                "operator.kyma-project.io/beta": "true",
                "operator.kyma-project.io/module-name": "hello",
            },
            "annotations": {
                "operator.kyma-project.io/doc-url": "https://example.com",
                "operator.kyma-project.io/is-cluster-scoped": "true",
            },
        },
        "spec": {
            "moduleName": "hello",
            "version": "1.0.3",
            "requiresDowntime": True,
            "info": {
                "repository": "https://example.com/hello",
                "documentation": "https://example.com/hello/README.md",
                "icons": [{"name": "module-icon", "link": "https://example.com/logo.png"}],
            },
            "associatedResources": [{"group": "operator.kyma-project.io", "version": "v1alpha1", "kind": "Hello"}],
            "data": yaml.load(DEFAULT_CR),
            "manager": {
                "name": "hello",
                "namespace": "kyma-system",
                "group": "apps",
                "version": "v1",
                "kind": "Deployment",
            },
            "descriptor": {},
            "resources": [{"name": "more", "link": "https://example.com/more.yaml"}],
        },
    }
    text = (folder.path / "template.yaml").read_text()
    assert text == yaml.dump(yaml.load(text), sort_keys=True)


def test_the_template_is_accepted_by_its_crd(folder: ModuleFolder) -> None:
    folder.type("build", "--channel", "regular")
    for kind, name in ((ModuleTemplate, "template.yaml"), (ModuleReleaseMeta, "module-release-meta.yaml")):
        version = next(one for one in crd(kind)["spec"]["versions"] if one["storage"])
        structural = Structural.compile(version["schema"]["openAPIV3Schema"])
        assert structural.validate(folder.document(name)) == []


def test_the_constructor_is_modulectl_s(folder: ModuleFolder, commit: str) -> None:
    """Contract 4.2: component-constructor.yaml; a whole document, in its order."""
    folder.type("build")
    label = "operator.kyma-project.io/"
    responsible = {"github_hostname": "github.tools.sap", "teamname": "acme/hello", "type": "githubTeam"}
    blob = {"type": "directoryTree", "version": "1.0.3", "relation": "local"}
    expected = {
        "name": "kyma-project.io/module/hello",
        "version": "1.0.3",
        "provider": {
            "name": "kyma-project.io",
            "labels": [{"name": "kyma-project.io/built-by", "value": "modulectl"} | V1],
        },
        "labels": [
            {"name": f"{label}beta", "value": "false"} | V1,
            {"name": f"{label}internal", "value": "false"} | V1,
            {"name": f"{label}requiresDowntime", "value": "false"} | V1,
            {"name": f"{label}is-cluster-scoped", "value": "true"} | V1,
            {"name": "security.kyma-project.io/scan", "value": "enabled"} | V1,
            {"name": "cloud.gardener.cnudie/responsibles", "value": [responsible]} | V1,
        ],
        "sources": [
            {
                "name": "module-sources",
                "type": "Github",
                "version": "1.0.3",
                "access": {"type": "gitHub", "repoUrl": "https://example.com/hello", "commit": commit},
            }
        ],
        "resources": [
            {
                "name": "hello",
                "type": "ociArtifact",
                "version": "1.0.3",
                "relation": "external",
                "labels": [{"name": "scan.security.kyma-project.io/type", "value": "third-party-image"} | V1],
                "access": {"type": "ociArtifact", "imageReference": "example.com/team/hello:1.0.3"},
            },
            {"name": "raw-manifest"}
            | blob
            | {"input": {"type": "dir", "path": ".", "includeFiles": ["manifest.yaml"], "compress": False}},
            {"name": "default-cr"}
            | blob
            | {"input": {"type": "dir", "path": ".", "includeFiles": ["default-cr.yaml"], "compress": False}},
            {
                "name": "moduletemplate",
                "type": "PlainText",
                "version": "1.0.3",
                "relation": "local",
                "input": {"type": "file", "path": "template.yaml"},
            },
        ],
    }
    text = (folder.path / "component-constructor.yaml").read_text()
    assert text == yaml.dump({"components": [expected]})


def test_a_module_that_is_not_scanned_names_no_team(folder: ModuleFolder) -> None:
    folder.write(securityScanEnabled=False, team=None)
    folder.type("build")
    text = (folder.path / "component-constructor.yaml").read_text()
    assert "responsibles" not in text and "security.kyma-project.io/scan\n" not in text


def test_files_of_modulectl_are_built(upstream: Path, folder: ModuleFolder) -> None:
    """Contract 4.2: a manifest and default CR by relative paths, with the data of modulectl."""
    data = upstream / "klm" / "modulectl"
    folder.write(manifest="raw.yaml", defaultCR="sub/cr.yaml")
    (folder.path / "sub").mkdir()
    (folder.path / "raw.yaml").write_bytes((data / "manifest" / "images" / "containers.yaml").read_bytes())
    (folder.path / "sub" / "cr.yaml").write_bytes((data / "defaultcr" / "test-defaultcr.yaml").read_bytes())
    found = folder.type("build", "--output-constructor-file", "out/constructor.yaml")
    assert "the manifest has no CRD of its kind" in found.output
    text = (folder.path / "out" / "constructor.yaml").read_text()
    assert "path: .." in text and "path: ../sub" in text and "path: ../template.yaml" in text


def test_other_channels_of_a_release_meta_are_kept(folder: ModuleFolder) -> None:
    folder.type("build", "--channel", "regular", "--channel", "fast")
    folder.write(version="1.1.0")
    folder.type("build", "--channel", "fast")
    assert folder.document("module-release-meta.yaml")["spec"] == {
        "moduleName": "hello",
        "ocmComponentName": "kyma-project.io/module/hello",
        "channels": [{"channel": "fast", "version": "1.1.0"}, {"channel": "regular", "version": "1.0.3"}],
    }


def test_a_channel_that_no_release_meta_takes_is_refused(folder: ModuleFolder) -> None:
    for channel in ("none", "No", "a", "a" * 33):
        assert "is no channel" in folder.type("build", "--channel", channel, code=1).output


def test_a_component_is_written_in_the_common_transport_format(folder: ModuleFolder) -> None:
    folder.type("build", "--output-directory", "ctf")
    folder.write(version="1.1.0")
    folder.type("build", "--output-directory", "ctf")
    ctf = folder.path / "ctf"
    index = msgspec.json.decode((ctf / "artifact-index.json").read_bytes())
    assert [one["tag"] for one in index["artifacts"]] == ["1.0.3", "1.1.0"]

    def blob(digest: str) -> bytes:
        return (ctf / "blobs" / digest.replace(":", ".")).read_bytes()

    manifest = msgspec.json.decode(blob(index["artifacts"][0]["digest"]))
    head, raw, *_ = manifest["layers"]
    assert manifest["config"]["mediaType"] == "application/vnd.ocm.software.component.config.v1+json"
    assert head["mediaType"] == "application/vnd.ocm.software.component-descriptor.v2+yaml+tar"
    assert msgspec.json.decode(blob(manifest["config"]["digest"]))["componentDescriptorLayer"] == head
    assert parse_descriptor(descriptor_file(blob(head["digest"]))).version == "1.0.3"
    assert manifest_of(blob(raw["digest"]), "oci-dir", largest=1 << 20) == MANIFEST.encode()


def test_the_same_module_gives_the_same_bytes(folder: ModuleFolder) -> None:
    first = folder.type("build", "--output-directory", "one").output
    second = folder.type("build", "--output-directory", "two").output
    assert first.replace("wrote one", "wrote two") == second


def test_a_folder_of_other_files_is_not_written_into(folder: ModuleFolder) -> None:
    assert "is not empty" in folder.type("build", "--output-directory", ".", code=1).output


def test_a_missing_manifest_is_named_with_its_folder(folder: ModuleFolder) -> None:
    folder.write(manifest="none.yaml")
    assert "manifest: none.yaml cannot be read: No such file" in folder.type("build", code=1).output


def test_a_manifest_that_holds_no_objects_is_refused(folder: ModuleFolder) -> None:
    for text, problem in (("", "holds no objects"), ("a: 1", "document 1 is no object"), ("{", "line 2")):
        (folder.path / "manifest.yaml").write_text(text)
        assert problem in folder.type("build", code=1).output


def test_sources_come_from_git_or_are_left_out(folder: ModuleFolder, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    refused = folder.type("build", "--module-sources-git-directory", str(tmp_path / "plain"), code=1)
    assert "is in no git repository" in refused.output
    folder.type("build", "--module-sources-git-directory", "")
    assert "module-sources" not in (folder.path / "component-constructor.yaml").read_text()


def test_a_scaffold_can_be_built_at_once(folder: ModuleFolder) -> None:
    words = ("--module-name", "kyma-project.io/module/new-thing", "--module-team", "acme/new", "--gen-default-cr")
    found = folder.type("scaffold", "-d", "new", *words)
    assert found.output.splitlines() == [
        "wrote new/scaffold-module-config.yaml",
        "wrote new/manifest.yaml",
        "wrote new/default-cr.yaml",
    ]
    built = folder.type("build", "-c", "new/scaffold-module-config.yaml", "-o", "new/template.yaml")
    assert "warning" not in built.output
    template = read(ModuleTemplate, folder.document("new/template.yaml"))
    assert template.metadata.name == "new-thing-0.0.1"


def test_a_scaffold_overwrites_the_config_alone_and_only_when_asked(folder: ModuleFolder) -> None:
    folder.type("scaffold", "-d", "new")
    assert "is there already" in folder.type("scaffold", "-d", "new", code=1).output
    (folder.path / "new" / "manifest.yaml").write_text("mine")
    assert "kept  new/manifest.yaml" in folder.type("scaffold", "-d", "new", "--overwrite").output
    assert (folder.path / "new" / "manifest.yaml").read_text() == "mine"
