"""Configurations of Flux: both defaulting passes and every rule of validation, without a cluster."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.garden.world import shoot_document

from hortus.domains.garden.extension.admission import review_shoot
from hortus.domains.garden.extension.topic import ConfigReview
from hortus.domains.garden.flux.config import SecretCopy, read_flux
from hortus.domains.garden.flux.defaulting import defaulted, first_pass, second_pass
from hortus.domains.garden.flux.health import sync_state
from hortus.domains.garden.flux.names import DEFAULT_COMPONENTS
from hortus.domains.garden.flux.review import FluxReviewer
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.kube import yaml

P = "spec.extensions[0].providerConfig"
GIT: dict[str, Any] = {
    "apiVersion": "source.toolkit.fluxcd.io/v1",
    "kind": "GitRepository",
    "spec": {"url": "https://git.example.org/fleet", "ref": {"branch": "main"}},
}
OCI: dict[str, Any] = {
    "apiVersion": "source.toolkit.fluxcd.io/v1",
    "kind": "OCIRepository",
    "spec": {"url": "oci://registry.example.org/fleet", "ref": {"tag": "latest"}},
}
SYNC: dict[str, Any] = {
    "apiVersion": "kustomize.toolkit.fluxcd.io/v1",
    "kind": "Kustomization",
    "spec": {"path": "clusters/production"},
}
RESOURCES = [
    {"name": "git-key", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "project-git-key"}},
    {"name": "vault", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "project-vault"}},
    {"name": "notes", "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "name": "project-notes"}},
]


def config(**parts: Any) -> dict[str, Any]:
    return {"apiVersion": "flux.extensions.gardener.cloud/v1alpha1", "kind": "FluxConfig", **parts}


def whole(source: Any = GIT, sync: Any = SYNC, **parts: Any) -> dict[str, Any]:
    return config(source={"template": source}, kustomization={"template": sync}, **parts)


def with_(template: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """The template with changed fields; `a__b` is field b of a, None removes one."""
    made = copy.deepcopy(template)
    for path, value in changes.items():
        *parents, name = path.split("__")
        at = made
        for parent in parents:
            at = at.setdefault(parent, {})
        if value is None:
            at.pop(name, None)
        else:
            at[name] = value
    return made


def shoot(**spec: Any) -> GardenShoot:
    return msgspec.convert(shoot_document(resources=RESOURCES, **spec), GardenShoot)


def errors(written: Any) -> list[str]:
    return [str(one) for one in read_flux(written, P, shoot()).errors]


# Defaulting.


def test_the_first_pass_makes_flux_an_empty_object() -> None:
    assert first_pass({}) == {"flux": {}}


@pytest.mark.parametrize(
    ("metadata", "reference", "namespace", "expected"),
    [
        pytest.param({}, {}, None, {"kind": "GitRepository"}, id="a default of the source does not reach it"),
        pytest.param(
            {"name": "fleet", "namespace": "here"},
            {},
            None,
            {"kind": "GitRepository", "name": "fleet", "namespace": "here"},
            id="what was written in the source does",
        ),
        pytest.param(
            {"name": "fleet", "namespace": "here"},
            {"kind": "Bucket", "name": "", "namespace": "there"},
            None,
            {"kind": "Bucket", "name": "fleet", "namespace": "there"},
            id="field by field",
        ),
        pytest.param(
            {"name": "fleet"},
            {},
            "gitops",
            {"kind": "GitRepository", "name": "fleet", "namespace": "gitops"},
            id="the namespace of flux fills what is empty",
        ),
        pytest.param(
            {"name": "fleet", "namespace": "here"},
            {},
            "gitops",
            {"kind": "GitRepository", "name": "fleet", "namespace": "here"},
            id="and the source's own goes first",
        ),
        pytest.param({}, {}, "", {"kind": "GitRepository"}, id="an empty namespace of flux counts as none"),
    ],
)
def test_the_first_pass_fills_the_reference_from_what_was_written(
    metadata: dict[str, str], reference: dict[str, str], namespace: str | None, expected: dict[str, str]
) -> None:
    source, sync = with_(GIT, metadata=metadata), with_(SYNC, spec__sourceRef=reference)
    flux = {} if namespace is None else {"namespace": namespace}
    made = first_pass(whole(source, sync, flux=flux))
    found = made["kustomization"]["template"]["spec"]["sourceRef"]
    assert {name: value for name, value in found.items() if value} == expected
    own = made["source"]["template"].get("metadata") or {}
    assert own.get("namespace", "") == (metadata.get("namespace") or namespace or "")


def test_the_second_pass_fills_each_part_with_constants() -> None:
    made = second_pass(whole(with_(GIT, spec__interval="0s"), flux={}))
    assert made["flux"] == {"version": "v2.9.2", "registry": "ghcr.io/fluxcd", "namespace": "flux-system"}
    place = {"name": "flux-system", "namespace": "flux-system"}
    assert made["source"]["template"]["metadata"] == place
    assert made["source"]["template"]["spec"]["interval"] == "1m0s"
    assert "secretRef" not in made["source"]["template"]["spec"]
    sync = made["kustomization"]["template"]
    assert sync["metadata"] == place
    assert sync["spec"] == {
        "path": "clusters/production",
        "prune": False,
        "interval": "1m0s",
        "sourceRef": {"kind": "GitRepository", **place},
    }


@pytest.mark.parametrize("interval", ["", "0", "0s", 0, None, "10m"])
def test_only_an_interval_of_zero_is_filled_in(interval: Any) -> None:
    made = defaulted(whole(with_(GIT, spec__interval=interval)))
    assert made["source"]["template"]["spec"]["interval"] == ("10m" if interval == "10m" else "1m0s")


@pytest.mark.parametrize(
    ("resource", "given", "expected"),
    [
        ("git-key", None, {"name": "flux-system"}),
        ("git-key", {"name": "mine"}, {"name": "mine"}),
        ("", None, None),
        (None, None, None),
    ],
)
def test_a_secret_resource_names_the_secret_of_the_source(resource: Any, given: Any, expected: Any) -> None:
    written = whole(with_(GIT, spec__secretRef=given))
    written["source"]["secretResourceName"] = resource
    assert defaulted(written)["source"]["template"]["spec"].get("secretRef") == expected


@pytest.mark.parametrize(
    "template", [{"kind": "Bucket"}, with_(GIT, apiVersion="source.toolkit.fluxcd.io/v1beta2"), with_(GIT, spec="x")]
)
def test_a_source_that_cannot_be_read_is_left_alone_and_refused(template: dict[str, Any]) -> None:
    written = whole(template, flux={"namespace": "gitops"})
    assert defaulted(written)["source"]["template"] == template
    assert errors(written)


def test_source_and_kustomization_may_both_be_absent() -> None:
    found = read_flux(config(), P, shoot())
    assert (found.errors, found.warnings) == ((), ())
    assert found.plan.source is found.plan.kustomization is None
    assert found.plan.components == DEFAULT_COMPONENTS
    assert read_flux(None, P, shoot()).plan == found.plan


_FIELDS = (
    *("flux", "source", "kustomization", "template", "metadata", "spec", "name", "namespace", "kind", "apiVersion"),
    *("sourceRef", "secretRef", "interval", "url", "ref", "path", "additionalSecretResources", "targetName"),
    *("secretResourceName", "version", "registry", "components", "componentsExtra", "syncMode", "suspend"),
)
ANY = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(_FIELDS), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.sampled_from(_FIELDS), ANY, max_size=6))
def test_any_shape_is_filled_in_once_and_judged_without_a_failure(written: dict[str, Any]) -> None:
    before = copy.deepcopy(written)
    made = defaulted(written)
    assert written == before
    assert second_pass(made) == made
    found = read_flux(written, P, shoot())
    assert all(one.path.startswith(P) for one in found.errors)


@given(
    source=st.sampled_from([GIT, OCI]),
    name=st.sampled_from(["", "fleet"]),
    namespace=st.sampled_from(["", "here"]),
    flux=st.sampled_from(["", "gitops"]),
    reference=st.fixed_dictionaries({}, optional={"name": st.just("other"), "namespace": st.just("elsewhere")}),
)
def test_a_reference_that_says_nothing_names_the_source_unless_only_defaults_name_it(
    source: dict[str, Any], name: str, namespace: str, flux: str, reference: dict[str, str]
) -> None:
    written = whole(
        with_(source, metadata={"name": name, "namespace": namespace}),
        with_(SYNC, spec__sourceRef=reference),
        flux={"namespace": flux},
    )
    found = read_flux(written, P, shoot())
    assert found.errors == ()
    assert found.plan.source is not None and found.plan.kustomization is not None
    made = found.plan.kustomization["spec"]["sourceRef"]
    own = {"kind": source["kind"], **found.plan.source["metadata"]}
    assert made == {**own, **reference}


# Validation: one wrong field each, and its path.

_S, _K = f"{P}.source.template", f"{P}.kustomization.template"
WRONG: list[tuple[Any, str]] = [
    ([], f"{P}: Invalid value"),
    ({"kind": "FluxConfig"}, f"{P}.apiVersion: Required value"),
    (config(kind="Flux"), f"{P}.kind: Unsupported value"),
    (config(flux=[]), f"{P}.flux: Invalid value"),
    (config(flux={"namespace": "a.b"}), f"{P}.flux.namespace: Invalid value"),
    (config(flux={"namespace": 5}), f"{P}.flux.namespace: Invalid value"),
    (config(flux={"version": "2.9.2"}), f"{P}.flux.version: Invalid value"),
    (config(flux={"version": "latest"}), f"{P}.flux.version: Invalid value"),
    (config(flux={"registry": "https://ghcr.io/fluxcd"}), f"{P}.flux.registry: Invalid value"),
    (config(flux={"components": "all"}), f"{P}.flux.components: Invalid value"),
    (config(flux={"components": ["source-controller"]}), f"{P}.flux.components: Required value"),
    (config(flux={"components": ["source-controller", "kustomize-controller", "x"]}), f"{P}.flux.components[2]"),
    (config(flux={"componentsExtra": ["source-watcher"] * 2}), f"{P}.flux.componentsExtra[1]: Duplicate value"),
    (config(source={"template": GIT}), f"{P}.kustomization: Required value"),
    (config(kustomization={"template": SYNC}), f"{P}.source: Required value"),
    (config(source={}, kustomization={"template": SYNC}), f"{_S}: Required value"),
    (config(source={"template": GIT}, kustomization={}), f"{_K}: Required value"),
    (whole([]), f"{_S}: Invalid value"),
    (whole(with_(GIT, apiVersion="source.toolkit.fluxcd.io/v1beta2")), f"{_S}.apiVersion: Unsupported value"),
    (whole(with_(GIT, apiVersion=None)), f"{_S}.apiVersion: Required value"),
    (whole(with_(GIT, kind="Bucket")), f"{_S}.kind: Unsupported value"),
    (whole(with_(GIT, metadata__name="A")), f"{_S}.metadata.name: Invalid value"),
    (whole(with_(GIT, metadata__namespace="a.b")), f"{_S}.metadata.namespace: Invalid value"),
    (whole(with_(GIT, spec__url=None)), f"{_S}.spec.url: Required value"),
    (whole(with_(GIT, spec__ref=None)), f"{_S}.spec.ref: Required value"),
    (whole(with_(GIT, spec__ref={"branch": ""})), f"{_S}.spec.ref: Required value"),
    (whole(with_(GIT, spec__ref="main")), f"{_S}.spec.ref: Invalid value"),
    (whole(with_(GIT, spec__interval="soon")), f"{_S}.spec.interval: Invalid value"),
    (whole(with_(GIT, spec__interval="-1m")), f"{_S}.spec.interval: Invalid value"),
    (whole(with_(OCI, apiVersion="source.toolkit.fluxcd.io/v1beta2")), f"{_S}.apiVersion: Unsupported value"),
    (whole(with_(OCI, spec__url="https://charts.example.org/fleet")), f"{_S}.spec.url: Invalid value"),
    (whole(with_(OCI, spec__ref={"branch": "main"})), f"{_S}.spec.ref: Required value"),
    (whole(with_(GIT, spec__secretRef={"name": "key"})), f"{P}.source.secretResourceName: Required value"),
    (whole(with_(GIT, spec__secretRef={})), f"{_S}.spec.secretRef.name: Required value"),
    (whole(sync=with_(SYNC, apiVersion="kustomize.toolkit.fluxcd.io/v1beta2")), f"{_K}.apiVersion: Unsupported value"),
    (whole(sync=with_(SYNC, kind="Kustomisation")), f"{_K}.kind: Unsupported value"),
    (whole(sync=with_(SYNC, spec__path=None)), f"{_K}.spec.path: Required value"),
    (whole(sync=with_(SYNC, spec__sourceRef="fleet")), f"{_K}.spec.sourceRef: Invalid value"),
    (config(additionalSecretResources={}), f"{P}.additionalSecretResources: Invalid value"),
    (config(additionalSecretResources=[{}]), f"{P}.additionalSecretResources[0].name: Required value"),
    (config(additionalSecretResources=[{"name": "none"}]), f"{P}.additionalSecretResources[0].name: Invalid value"),
    (config(additionalSecretResources=[{"name": "notes"}]), f"{P}.additionalSecretResources[0].name: Invalid value"),
    (
        config(additionalSecretResources=[{"name": "vault", "targetName": "A b"}]),
        f"{P}.additionalSecretResources[0].targetName: Invalid value",
    ),
    (
        config(
            additionalSecretResources=[{"name": "vault", "targetName": "x"}, {"name": "git-key", "targetName": "x"}]
        ),
        f"{P}.additionalSecretResources[1].targetName: Duplicate value",
    ),
    (config(syncMode="Never"), f"{P}.syncMode: Unsupported value"),
    (config(suspend="yes"), f"{P}.suspend: Invalid value"),
]


@pytest.mark.parametrize(("written", "problem"), WRONG, ids=[problem for _, problem in WRONG])
def test_a_wrong_field_is_refused_with_its_path(written: Any, problem: str) -> None:
    found = errors(written)
    assert [one for one in found if one.startswith(problem)], found
    assert len(found) == 1, found


@pytest.mark.parametrize(
    ("resource", "problem"),
    [("none", "has no entry of this name; there are: git-key, notes, vault"), ("notes", "refers to a ConfigMap")],
)
def test_the_secret_of_a_source_must_be_a_secret_of_the_shoot(resource: str, problem: str) -> None:
    written = whole()
    written["source"]["secretResourceName"] = resource
    (found,) = errors(written)
    assert found.startswith(f"{P}.source.secretResourceName: Invalid value") and problem in found


def test_secrets_are_copied_by_their_names_in_the_seed() -> None:
    written = whole(with_(GIT, metadata__namespace="sources"), flux={"namespace": "gitops"})
    written["source"]["secretResourceName"] = "git-key"
    written["additionalSecretResources"] = [{"name": "vault"}, {"name": "vault", "targetName": "second"}]
    found = read_flux(written, P, shoot())
    assert found.errors == ()
    assert found.plan.secrets == (
        SecretCopy("ref-project-git-key", "flux-system", "sources"),
        SecretCopy("ref-project-vault", "vault", "gitops"),
        SecretCopy("ref-project-vault", "second", "gitops"),
    )


def test_suspend_pauses_both_objects_and_sync_mode_once_leaves_flux_to_itself() -> None:
    plan = read_flux(whole(suspend=True, syncMode="Once"), P, shoot()).plan
    assert plan.source is not None and plan.kustomization is not None
    assert (plan.source["spec"]["suspend"], plan.kustomization["spec"]["suspend"]) == (True, True)
    assert (plan.suspended, plan.keeps) == (True, False)


def test_unknown_fields_and_a_foreign_reference_are_warned_of() -> None:
    written = whole(sync=with_(SYNC, spec__sourceRef={"name": "other"}), sourcce={})
    found = read_flux(written, P, shoot())
    assert found.errors == ()
    assert found.warnings == (
        f"{_K}.spec.sourceRef: refers to GitRepository flux-system/other, and not to the source of this configuration, "
        "GitRepository flux-system/flux-system",
        f"{P}.sourcce: unknown field",
    )


def test_unknown_fields_of_templates_are_warned_of_and_not_applied() -> None:
    found = read_flux(whole({**GIT, "sepc": {}, "status": {}}, {**SYNC, "data": 1}), P, shoot())
    assert (found.errors, found.warnings) == ((), (f"{_S}.sepc: unknown field", f"{_K}.data: unknown field"))
    assert found.plan.source is not None and found.plan.kustomization is not None
    for made in (found.plan.source, found.plan.kustomization):
        assert sorted(made) == ["apiVersion", "kind", "metadata", "spec"]


def test_a_moved_kustomization_is_warned_of_at_admission() -> None:
    def warned(former: Any, after: Any) -> tuple[str, ...]:
        return FluxReviewer().review(ConfigReview(config=after, shoot=shoot(), path=P, former=former)).warnings

    before = whole(sync=with_(SYNC, spec__prune=True))
    assert warned(before, before) == ()
    (moved,) = warned(before, whole(sync=with_(SYNC, metadata__name="other")))
    assert "flux-system/flux-system is deleted; what it applied stays, and is not pruned" in moved
    assert any("removed from flux-system" in one for one in warned(before, whole(flux={"namespace": "gitops"})))


def test_a_shoot_with_a_wrong_configuration_from_before_may_change_elsewhere() -> None:
    extensions = [{"type": "shoot-flux", "providerConfig": config(source={"template": GIT})}]
    former, after = (shoot(extensions=extensions, region=region) for region in ("a", "b"))
    assert [one.path for one in review_shoot([FluxReviewer()], after).errors] == [f"{P}.kustomization"]
    found = review_shoot([FluxReviewer()], after, former)
    assert found.errors == () and len(found.warnings) == 1


def test_the_example_of_the_go_extension_is_accepted(upstream: Path) -> None:
    document = yaml.load((upstream / "gardener" / "flux" / "shoot.yaml").read_bytes())
    found = review_shoot([FluxReviewer()], msgspec.convert(document, GardenShoot))
    assert (found.errors, found.warnings) == ((), ())


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, ("Progressing", "NotReconciled")),
        (("True", 2, 0), ("True", "Succeeded")),
        (("True", 1, 0), ("Progressing", "Outdated")),
        (("False", 2, 2), ("False", "Succeeded")),
        (("False", 1, 2), ("False", "Succeeded")),
        (("False", 1, 1), ("Progressing", "Outdated")),
        (("Unknown", 1, 2), ("Progressing", "Succeeded")),
    ],
)
def test_the_state_of_an_object_of_flux_is_that_of_its_generation(status: Any, expected: tuple[str, str]) -> None:
    found: dict[str, Any] = {"kind": "Kustomization", "metadata": {"name": "a", "namespace": "b", "generation": 2}}
    if status:
        word, seen, of_condition = status
        ready = {"type": "Ready", "status": word, "reason": "Succeeded", "observedGeneration": of_condition}
        found["status"] = {"observedGeneration": seen, "conditions": [ready]}
    made = sync_state(found, "Kustomization")
    assert (made.status, made.reason) == expected
    paused = sync_state({**found, "spec": {"suspend": True}}, "Kustomization")
    assert (paused.status, paused.reason) == ("True", "Suspended")
    assert sync_state(None, "Kustomization").status == "False"
