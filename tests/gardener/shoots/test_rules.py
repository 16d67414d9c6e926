"""20,000 random Shoots meet each rule of Gardener's validation 200 times, and 20,000 random updates each one of theirs.

Counters compiled into Gardener's own source say so. Rules that cannot be met stand here with their reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from tests.gardener.shoots.generator import shoots
from tests.gardener.shoots.rules import Rule, counting, met
from tests.gardener.shoots.updates import updates
from tests.oracles.programs import GoProgram, built_program, why_not

pytestmark = pytest.mark.soak

_COUNT = 20_000
_OFTEN = 200
_PROGRAM = "gardenerrules"
_OF_TEMPLATES = {"ValidateShootTemplate", "ValidateShootTemplateUpdate"}
"""Functions for ManagedSeedSets."""

_Key = tuple[str, str]
"""A function, and a piece of the line with its rule."""

_NEVER: dict[_Key, str] = {
    ("validateAddons", "disallowed by landscape operator"): "the gate DisableNginxIngressInShoot is off by default",
    (
        "validateWorkerGroupAndControlPlaneKubernetesVersion",
        "fldPath, workerGroupVersion, err.Error()",
    ): "Gardener panics a line later, where the version of a pool cannot be read",
    ("validateNetworking", "should not be nil for a Shoot with workers"): "it has a default",
    ("validateKubeProxy", "must be set when .spec.kubernetes.kubeProxy is set"): "it has a default",
    ("validateCoreDNS", "coreDNS.Autoscaling.Mode"): "another mode is replaced by the default",
    (
        "validateDNSCredentialsRef",
        "must not be set when `credentialsRef` is not set",
    ): "it is set to the same Secret before",
    ("ValidateObjectReferenceNameAndNamespace", "must provide a namespace"): "no field of a Shoot requires it",
    ("validateCredentialsRef", "namespace must not be set"): "a local reference has no namespace",
    ("ValidateAdmissionPlugins", "forbidden admission plugin(s)"): "no plugin is forbidden",
    (
        "ValidateFeatureGates",
        "fldPath.Child(featureGate), featureGate, err.Error()",
    ): "an unreadable version fails before",
}
_OF_UPDATES = {
    "ValidateEncryptionConfigUpdate",
    "ValidateForceDeletion",
    "ValidateInPlaceUpdates",
    "ValidateKubernetesVersionUpdate",
    "ValidateProviderUpdate",
    "ValidateShootSpecUpdate",
    "validateAdvertiseAddresses",
    "validateAdvertisedURL",
    "validateControlPlaneZonesUpdate",
    "validateDNSUpdate",
    "validateHibernationUpdate",
    "validateIPFamiliesUpdate",
    "validateMachineImageVersionInPlaceUpdate",
    "validateNetworkingUpdate",
    "validateNodeLocalDNSUpdate",
    "validatePendingWorkerUpdates",
    "validateShootHAControlPlaneSpecUpdate",
    "validateWorkerUpdate",
}
"""Functions with rules that compare with what a garden holds, or look at its status."""
_WITHOUT_RULES = {
    "ValidateShootHAConfigUpdate",
    "ValidateShootObjectMetaUpdate",
    "ValidateShootStatusUpdate",
    "ValidateShootUpdate",
    "controlPlaneZones",
    "validateKubeControllerManagerUpdate",
    "validateNetworkingStatus",
}
"""Functions for updates that leave the rules to others."""
_NEVER_ON_UPDATES: dict[_Key, str] = {
    ("ValidateKubernetesVersionUpdate", "fldPath, oldVersion, err.Error()"): "a garden holds no unreadable version",
    ("validateNodeLocalDNSUpdate", "failed to parse old Kubernetes version"): "a garden holds no unreadable version",
    ("validateNodeLocalDNSUpdate", "failed to calculate effective"): "a garden holds no unreadable version",
    ("ValidateInPlaceUpdates", "failed to parse old control plane"): "a garden holds no unreadable version",
    ("ValidateInPlaceUpdates", "effective kubernetes version for old"): "a garden holds no unreadable version",
    ("ValidateInPlaceUpdates", "effective kubernetes version for new"): "Gardener panics before",
    ("validateNetworkingUpdate", "networking cannot be set to nil"): "it has a default",
}
_NEVER_ON_CREATION: dict[_Key, str] = {
    ("validateShootOperationContext", "phase is not 'Completed'"): "a new Shoot has no status",
    ("validatePendingWorkerUpdates", "forbiddenPendingWorkerUpdatesMessageTemplate"): "a new Shoot has no status",
    ("ValidateForceDeletion", "cannot be removed once set"): "nothing was set before",
    ("ValidateWorker", '"image", "name"), "must specify a machine image name"'): "the first of two: for templates",
}


def test_random_shoots_meet_each_rule_of_creations(tmp_path: Path) -> None:
    def ask(gardener: GoProgram) -> None:
        for drawn in shoots(7, _COUNT):
            gardener.ask(op="create", object=drawn.shoot, brief=True, only="stored")

    rules, silent = _met(ask, tmp_path)
    assert _seldom(rules, {**_NEVER, **_NEVER_ON_CREATION}) == []
    assert len(rules) > 300
    assert silent - _OF_UPDATES - _OF_TEMPLATES == _WITHOUT_RULES


def _met(ask: Callable[[GoProgram], None], folder: Path) -> tuple[tuple[Rule, ...], frozenset[str]]:
    if built_program(_PROGRAM) is None:
        pytest.skip(why_not(_PROGRAM))
    with counting(_PROGRAM, folder) as gardener:
        ask(gardener)
    return met(folder)


def _seldom(rules: Iterable[Rule], never: dict[_Key, str]) -> list[Rule]:
    return [rule for rule in rules if rule.count < _OFTEN and not _is_known(rule, never)]


def _is_known(rule: Rule, never: dict[_Key, str]) -> bool:
    return rule.count == 0 and any(rule.function == function and piece in rule.text for function, piece in never)


def test_random_updates_meet_each_rule_of_updates(tmp_path: Path) -> None:
    def ask(gardener: GoProgram) -> None:
        for drawn in updates(7, _COUNT):
            gardener.ask(
                op="update",
                object=drawn.sent,
                old=drawn.held,
                subresource=drawn.subresource,
                brief=True,
                only="stored",
            )

    rules, _ = _met(ask, tmp_path)
    of_updates = [rule for rule in rules if rule.function in _OF_UPDATES]
    assert _seldom(of_updates, _NEVER_ON_UPDATES) == []
    assert {rule.function for rule in of_updates} == _OF_UPDATES
