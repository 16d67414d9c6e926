"""A garden as it is: gardener-apiserver with its admission plugins, behind an API server by aggregation.

    with running_garden(folder, server) as garden:
        ...  # Shoots, CloudProfiles and Seeds through `server`, judged by Gardener itself

`server` is an embedded API server or a real kube-apiserver. No controller of Gardener runs: a test that
needs gardener-controller-manager or gardenlet plays them. `setup` returns the objects that a Shoot refers to, and
`shoot` a Shoot that Gardener takes.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.oracles.extension import Aggregator, Extension, RunningExtension, running_extension
from tests.oracles.programs import built_program, why_not

from hortus.kube.objects import Object

PROGRAM = "gardenerapiserver"
GARDEN = Extension(
    "garden",
    "gardener-apiserver",
    [
        ("core.gardener.cloud", "v1"),
        ("core.gardener.cloud", "v1beta1"),
        ("seedmanagement.gardener.cloud", "v1alpha1"),
        ("operations.gardener.cloud", "v1alpha1"),
        ("security.gardener.cloud", "v1alpha1"),
    ],
    ("--cluster-identity=tests", "--log-level=info", "--log-format=text"),
    priority=9999,
)
CORE = "/apis/core.gardener.cloud/v1beta1"
SECURITY = "/apis/security.gardener.cloud/v1alpha1"
PROJECT, NAMESPACE = "dev", "garden-dev"
PROVIDER, REGION, IMAGE, IMAGE_VERSION, MACHINE = "local", "local", "local", "1.0.0", "local"
NETWORK = "calico"
VERSIONS = ("1.36.1", "1.35.2", "1.34.3", "1.33.4")
"""The versions of Kubernetes in the CloudProfile."""
_EXTENSIONS = (
    ("ControlPlane", PROVIDER),
    ("Infrastructure", PROVIDER),
    ("Worker", PROVIDER),
    ("DNSRecord", PROVIDER),
    ("OperatingSystemConfig", IMAGE),
    ("Network", NETWORK),
    ("ContainerRuntime", "gvisor"),
)


class Setup(NamedTuple):
    """An object that a Shoot stands on, with the path of its collection."""

    collection: str
    obj: Object


class RunningGarden(NamedTuple):
    server: Aggregator
    extension: RunningExtension
    ready_after: float
    """Seconds from the start of the program's etcd until all groups were available."""


def find_garden() -> Path | None:
    """gardener-apiserver, None where `make oracles-soak` has not built it."""
    return built_program(PROGRAM)


def why_no_garden() -> str:
    return why_not(PROGRAM)


@contextmanager
def running_garden(folder: Path, server: Aggregator, *, flags: Sequence[str] = ()) -> Iterator[RunningGarden]:
    """Runs gardener-apiserver behind `server`, whose users and roles it asks for."""
    binary = find_garden()
    assert binary is not None, why_no_garden()
    began = time.monotonic()
    extension = GARDEN._replace(flags=(*GARDEN.flags, *flags))
    with running_extension(binary, folder, server, extension) as running:
        yield RunningGarden(server, running, time.monotonic() - began)


def setup() -> list[Setup]:
    """Project with its namespace, extensions, CloudProfile and credentials, in the order of their creation."""
    labels = {"gardener.cloud/role": "project", "project.gardener.cloud/name": PROJECT}
    admin = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kubernetes-admin", "role": "admin"}
    secret = {"metadata": {"name": "cloud", "labels": {f"provider.shoot.gardener.cloud/{PROVIDER}": "true"}}}
    reference = {"apiVersion": "v1", "kind": "Secret", "name": "cloud", "namespace": NAMESPACE}
    return [
        Setup("/api/v1/namespaces", {"metadata": {"name": NAMESPACE, "labels": labels}}),
        Setup(
            f"{CORE}/projects",
            {"metadata": {"name": PROJECT}, "spec": {"namespace": NAMESPACE, "owner": admin, "members": []}},
        ),
        Setup(f"{CORE}/controllerregistrations", _registration()),
        Setup(f"{CORE}/cloudprofiles", cloud_profile()),
        Setup(f"/api/v1/namespaces/{NAMESPACE}/secrets", secret),
        Setup(
            f"{SECURITY}/namespaces/{NAMESPACE}/credentialsbindings",
            {"metadata": {"name": "cloud"}, "provider": {"type": PROVIDER}, "credentialsRef": reference},
        ),
    ]


def _registration() -> Object:
    resources = [{"kind": kind, "type": name, "primary": True} for kind, name in _EXTENSIONS]
    return {"metadata": {"name": "provider"}, "spec": {"resources": resources}}


def cloud_profile() -> Object:
    image = {"version": IMAGE_VERSION, "cri": [{"name": "containerd"}], "architectures": ["amd64"]}
    machine = {"name": MACHINE, "cpu": "4", "gpu": "0", "memory": "8Gi", "architecture": "amd64", "usable": True}
    return {
        "metadata": {"name": "local"},
        "spec": {
            "type": PROVIDER,
            "kubernetes": {"versions": [{"version": version} for version in VERSIONS]},
            "machineImages": [{"name": IMAGE, "versions": [image]}],
            "machineTypes": [machine],
            "regions": [{"name": REGION, "zones": [{"name": "a"}, {"name": "b"}]}],
        },
    }


def shoot(name: str, *, version: str = VERSIONS[1]) -> Object:
    """A Shoot of the project that Gardener takes."""
    worker = {
        "name": "w",
        "machine": {"type": MACHINE, "image": {"name": IMAGE, "version": IMAGE_VERSION}},
        "cri": {"name": "containerd"},
        "minimum": 1,
        "maximum": 2,
        "maxSurge": 1,
        "maxUnavailable": 0,
    }
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "Shoot",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "cloudProfile": {"kind": "CloudProfile", "name": "local"},
            "credentialsBindingName": "cloud",
            "region": REGION,
            "networking": {"type": NETWORK, "nodes": "10.10.0.0/16"},
            "kubernetes": {"version": version},
            "provider": {"type": PROVIDER, "workers": [worker]},
        },
    }
