"""Flux's install manifests fitted to a Shoot, and read from folders, addresses and OCI artifacts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web
from tests.domains.garden.flux.shoots import SAMPLES
from tests.oracles.programs import GoProgram, go_program
from tests.render.oci.registry import Registry
from tests.render.serving import loopback, serving

from hortus.cli.flags import FLAGS
from hortus.domains.garden.flux.config import FluxPlan
from hortus.domains.garden.flux.library import ManifestLibrary
from hortus.domains.garden.flux.manifests import ManifestFile, MissingComponent, installation
from hortus.domains.garden.flux.names import DEFAULT_COMPONENTS
from hortus.domains.garden.flux.settings import FluxManifestSettings, flux_settings
from hortus.domains.garden.settings import extension_settings
from hortus.engine import StepError
from hortus.engine.flags import FlagError, FlagSet
from hortus.kube import yaml
from hortus.kube.clock import SystemClock
from hortus.kube.objects import Object
from hortus.render.archive import Tree, pack_tgz
from hortus.render.artifacts import digest_of
from hortus.render.oci import OciClient, OciSettings, parse_reference

PLAN = FluxPlan(version="v2.9.2", registry="ghcr.io/fluxcd", namespace="flux-system")
FEW = ("source-controller", "kustomize-controller")
TGZ = pack_tgz(Tree({file.name: file.read_bytes() for file in sorted(SAMPLES.iterdir())}))


def files(folder: Path = SAMPLES) -> list[ManifestFile]:
    return [ManifestFile(one.stem, tuple(yaml.load_all(one.read_bytes()))) for one in sorted(folder.iterdir())]


def plan(**changes: Any) -> FluxPlan:
    return msgspec.structs.replace(PLAN, **changes)


def found(objects: list[Object], kind: str, name: str) -> Object:
    (one,) = (one for one in objects if (one["kind"], one["metadata"]["name"]) == (kind, name))
    return one


def test_names_labels_and_namespaces_are_those_of_flux_install() -> None:
    made = installation(files(), plan(namespace="gitops", registry="registry.example.org/flux"))
    namespaces = {one["metadata"].get("namespace", "gitops") for one in made}
    assert namespaces == {"gitops"}
    labels = {"app.kubernetes.io/instance": "gitops", "app.kubernetes.io/version": "v2.9.2"}
    assert all(labels.items() <= one["metadata"]["labels"].items() for one in made)
    binding = found(made, "ClusterRoleBinding", "crd-controller-gitops")
    assert binding["roleRef"]["name"] == "crd-controller-gitops"
    assert {one["namespace"] for one in binding["subjects"]} == {"gitops"}
    assert found(made, "ClusterRoleBinding", "cluster-reconciler-gitops")["roleRef"]["name"] == "cluster-admin"
    pod = found(made, "Deployment", "source-controller")["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert pod["containers"][0]["image"] == "registry.example.org/flux/source-controller:v1.9.3"
    assert (
        "--events-addr=http://notification-controller.$(RUNTIME_NAMESPACE).svc.cluster.local./"
        in pod["containers"][0]["args"]
    )


def test_only_the_components_that_are_wanted_are_installed() -> None:
    made = installation(files(), plan(components=FEW))
    assert {one["metadata"]["name"] for one in made if one["kind"] == "Deployment"} == set(FEW)
    arguments = found(made, "Deployment", "source-controller")["spec"]["template"]["spec"]["containers"][0]["args"]
    assert "--events-addr=" in arguments
    with pytest.raises(MissingComponent, match=r"Flux v2\.9\.2 have no source-watcher"):
        installation(files(), plan(components=(*FEW, "source-watcher")))


def test_the_single_file_of_a_release_gives_the_same_objects() -> None:
    whole = installation(files(), PLAN)
    renamed = plan(namespace="gitops", components=FEW)
    assert _sorted(installation([ManifestFile("install", tuple(whole))], renamed)) == _sorted(
        installation(files(), renamed)
    )


def _sorted(objects: list[Object]) -> list[Object]:
    return sorted(objects, key=lambda one: (one["kind"], one["metadata"]["name"]))


@pytest.fixture(scope="session")
def flux_install() -> Iterator[GoProgram]:
    yield from go_program("fluxinstall")


@pytest.mark.parametrize(
    "wanted",
    [
        PLAN,
        plan(components=FEW),
        plan(namespace="gitops", registry="registry.example.org:5000/a/b"),
        plan(version="v2.10.0", components=("kustomize-controller", "source-controller", "helm-controller")),
    ],
)
def test_the_objects_are_those_of_flux_itself(flux_install: GoProgram, wanted: FluxPlan, tmp_path: Path) -> None:
    for file in SAMPLES.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    answer = flux_install.ask(
        folder=str(tmp_path),
        version=wanted.version,
        namespace=wanted.namespace,
        registry=wanted.registry,
        components=list(wanted.components),
    )
    theirs = [one for one in yaml.load_all(answer["content"]) if one]
    assert _sorted(installation(files(), wanted)) == _sorted(theirs)


# Places.


def library(place: str, **digests: str) -> ManifestLibrary:
    return ManifestLibrary(FluxManifestSettings(manifests=place, digests=digests), clock=SystemClock())


async def names_of(place: str, version: str = "v2.9.2", **digests: str) -> list[str]:
    return [one.name for one in await library(place, **digests).load(version)]


NAMES = sorted(file.stem for file in SAMPLES.iterdir())


async def test_manifests_are_read_from_a_folder_and_from_a_file(tmp_path: Path) -> None:
    assert await names_of(str(SAMPLES)) == NAMES
    (tmp_path / "v2.9.2.tar.gz").write_bytes(TGZ)
    assert await names_of(str(tmp_path / "{version}.tar.gz")) == NAMES


class Releases:
    """Serves one release, and counts."""

    def __init__(self, body: bytes = TGZ, status: int = 200) -> None:
        self.body, self.status, self.asked = body, status, 0

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked += 1
        assert request.path == "/download/v2.9.2/manifests.tar.gz"
        return web.Response(body=self.body, status=self.status)


async def test_a_release_is_downloaded_once_for_all_shoots_and_checked() -> None:
    releases = Releases()
    async with serving(releases.handle) as site:
        place = f"http://{site.host}/download/{{version}}/manifests.tar.gz"
        made = library(place, **{"v2.9.2": digest_of(TGZ)})
        loaded = await asyncio.gather(*(made.load("v2.9.2") for _ in range(5)))
        assert [one.name for one in loaded[0]] == NAMES
        assert releases.asked == 1
        with pytest.raises(StepError, match="have the digest sha256:"):
            await names_of(place, **{"v2.9.2": digest_of(b"")})
        with pytest.raises(StepError, match=r"has no digest of Flux v2\.9\.3"):
            await names_of(place, "v2.9.3", **{"v2.9.2": digest_of(TGZ)})


@pytest.mark.parametrize(
    ("release", "problem"),
    [
        (Releases(status=404), "HTTP status 404"),
        (Releases(b"\x1f\x8bnonsense"), "manifests of Flux v2.9.2"),
        (Releases(b"a: [1"), "manifests of Flux v2.9.2"),
        (Releases(b"a: 1"), "a document that is no object"),
        (Releases(b"{apiVersion: v1, kind: Secret, metadata: {}}"), "without a name"),
        (Releases(pack_tgz(Tree({"README.md": b"x"}))), "has no manifests"),
    ],
)
async def test_a_release_that_cannot_be_used_is_named_and_asked_for_again(release: Releases, problem: str) -> None:
    async with serving(release.handle) as site:
        made = library(f"http://{site.host}/download/{{version}}/manifests.tar.gz")
        for _ in range(2):
            with pytest.raises(StepError, match=problem):
                await made.load("v2.9.2")
        assert release.asked == 2


async def test_manifests_are_pulled_from_a_registry_and_checked() -> None:
    registry = Registry()
    async with serving(registry.handle) as site:
        registry.site = site
        place = f"oci://{site.host}/flux/manifests"
        async with OciClient(settings=OciSettings(transfer=loopback(site.host))) as client:
            layer = ("application/vnd.cncf.flux.content.v1.tar+gzip", TGZ)
            await client.push(parse_reference(f"{place}:v2.9.2"), (layer,), artifact_type="application/vnd.example")
            await client.push(
                parse_reference(f"{place}:v2.9.3"), (layer, layer), artifact_type="application/vnd.example"
            )
        assert await names_of(f"{place}:{{version}}", **{"v2.9.2": digest_of(TGZ)}) == NAMES
        with pytest.raises(StepError, match="have the digest"):
            await names_of(f"{place}:{{version}}", **{"v2.9.2": digest_of(b"")})
        with pytest.raises(StepError, match="has 2 layers"):
            await names_of(f"{place}:{{version}}", "v2.9.3")


# Flags.


def parsed(*arguments: str) -> Any:
    return FlagSet(FLAGS).parse(list(arguments))


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--flux-manifests="], "is empty"),
        (["--flux-manifests=ftp://x"], "must begin with https:// or oci://"),
        (["--flux-manifests=http://x"], "which nothing protects"),
        (["--flux-manifest-digests=v2.9.2"], "must be a version and sha256:"),
        (["--flux-manifest-digests=2.9.2=sha256:" + "0" * 64], "must be a version and sha256:"),
    ],
)
def test_a_wrong_flag_is_refused(arguments: list[str], problem: str) -> None:
    with pytest.raises(FlagError, match=problem):
        flux_settings(parsed(*arguments))


def test_flags_make_settings() -> None:
    digest = "sha256:" + "0" * 64
    made = flux_settings(parsed(f"--flux-manifest-digests=v2.9.2={digest}, v2.9.3={digest}"))
    assert made.place("v2.9.2") == "https://github.com/fluxcd/flux2/releases/download/v2.9.2/manifests.tar.gz"
    assert made.digests == {"v2.9.2": digest, "v2.9.3": digest}
    assert flux_settings(parsed("--flux-manifests=/some/folder")).is_folder


def test_the_extension_is_chosen_by_its_type_or_its_topic() -> None:
    for word in ("flux", "shoot-flux"):
        assert extension_settings(parsed(f"--garden-extensions=acl,{word}")).types == ("acl", "shoot-flux")


def test_all_samples_are_components_or_shared() -> None:
    assert {*DEFAULT_COMPONENTS, "rbac", "policies"} == set(NAMES)
