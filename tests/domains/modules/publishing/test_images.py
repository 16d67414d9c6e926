"""Images of a manifest, and the versions under which a component lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hortus.domains.modules.publishing.images import BadImage, distinct_names, images_of, read_image
from hortus.kube import yaml

DIGEST = "c7742da01aa7ee169d59e58a91c35da9c13e67f555dcd8b2ada15887aa619e6c"
OPERATOR = "europe-docker.pkg.dev/kyma-project/prod/template-operator:1.0.3"
WEBHOOK = "europe-docker.pkg.dev/kyma-project/prod/webhook:v1.2.0"


def workload(image: str, *, kind: str = "Deployment", env: str = "", init: str = "") -> dict[str, Any]:
    container: dict[str, Any] = {"name": "manager", "image": image}
    if env:
        container["env"] = [{"name": "HELPER", "value": env}]
    pods: dict[str, Any] = {"containers": [container]}
    if init:
        pods["initContainers"] = [{"name": "init", "image": init}]
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "web"}, "spec": {"template": {"spec": pods}}}


def found(*objects: dict[str, Any]) -> list[str]:
    return [image.reference for image in images_of(objects)]


@pytest.mark.parametrize(
    ("file", "images"),
    [
        ("containers", [OPERATOR, WEBHOOK, "nginx:1.25.0"]),
        ("deployment-statefulset", [OPERATOR, WEBHOOK, f"gcr.io/distroless/static@sha256:{DIGEST}", "postgres:15.3"]),
        ("env-variables", ["alpine:3.18.0", OPERATOR, WEBHOOK, "migrate/migrate:v4.16.0"]),
    ],
)
def test_images_of_modulectl_s_manifests(upstream: Path, file: str, images: list[str]) -> None:
    """Contract 4.2: containers, init containers and variables of Deployments and StatefulSets."""
    path = upstream / "klm" / "modulectl" / "manifest" / "images" / f"{file}.yaml"
    assert found(*yaml.load_all(path.read_bytes())) == sorted(images)


def test_other_workloads_are_not_looked_into() -> None:
    assert found(workload("a/b:1", kind="DaemonSet"), workload("a/c:1", kind="StatefulSet", init="a/d:2")) == [
        "a/c:1",
        "a/d:2",
    ]


@pytest.mark.parametrize("value", ["plain", "a b:c", "${IMAGE}:x", "http://server:80/path", "x:", "a" * 257 + ":1"])
def test_variables_that_are_no_reference_are_passed_over(value: str) -> None:
    assert found(workload("a/b:1", env=value)) == ["a/b:1"]


@pytest.mark.parametrize("image", ["a/b:latest", "a/b:main", "a/b", "A/B:1", "a b:1"])
def test_an_image_that_names_no_fixed_content_is_refused(image: str) -> None:
    """Contract 4.2: tags latest and main are refused, a tag or digest is required."""
    with pytest.raises(BadImage, match=r"Deployment web, container manager: "):
        images_of([workload(image)])


def test_a_moving_tag_in_a_variable_is_refused() -> None:
    with pytest.raises(BadImage, match="variable HELPER: image a/c:latest has the tag latest"):
        images_of([workload("a/b:1", env="a/c:latest")])


def test_a_workload_of_another_shape_is_named() -> None:
    broken = workload("a/b:1") | {"spec": {"template": {"spec": {"containers": "none"}}}}
    with pytest.raises(BadImage, match=r"Deployment web\.spec\.template\.spec\.containers: must be a list"):
        images_of([broken])


@pytest.mark.parametrize(
    ("reference", "name", "version"),
    [
        ("a/web:1.2.3", "web", "1.2.3"),
        ("a/web:v1.2.3", "web", "0.0.0-v1.2.3"),
        ("a/web:15.3", "web", "0.0.0-15.3"),
        (f"a/web:1.2.3@sha256:{DIGEST}", "web-c7742da0", "1.2.3+sha256.c7742da01aa7"),
        (f"a/web@sha256:{DIGEST}", "web-c7742da0", "0.0.0+sha256.c7742da01aa7"),
        ("registry:5000/deep/path/web:0.1.0", "web", "0.1.0"),
    ],
)
def test_the_version_of_an_image(reference: str, name: str, version: str) -> None:
    """Contract 4.2: the version and name of an image's resource."""
    image = read_image(reference, "here")
    assert (image.resource_name, image.version) == (name, version)


def test_two_images_of_one_name_and_version_stay_apart() -> None:
    images = [read_image(text, "here") for text in ("a/web:1.0.0", "b/web:1.0.0")]
    names = [name for name, _ in distinct_names(images)]
    assert names[0] == "web" and names[1].startswith("web-") and len(names[1]) == len("web-") + 8
