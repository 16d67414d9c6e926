"""The rules that a Gardenlet must keep. Pure.

The API server judges the metadata by a ValidatingAdmissionPolicy, and the spec by the schema. The controllers judge all
of it again, since a garden may serve the kind without either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from hortus.domains.garden.gardenlets.config import config_problems
from hortus.domains.garden.kinds.gardenlet import (
    GARDEN_NAMESPACE,
    GARDENLETS,
    OPERATION,
    Gardenlet,
    GardenletOperation,
)
from hortus.kube.objects import Object

RESERVED: Final = "self-hosted-shoot-"
"""Begin of names that Gardener keeps for gardenlets of self-hosted Shoots."""
OPERATIONS: Final = (
    GardenletOperation.RECONCILE,
    GardenletOperation.RENEW_KUBECONFIG,
    GardenletOperation.FORCE_REDEPLOY,
)
_LABEL: Final = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?"
_NAME: Final = f"metadata.name: must be a DNS label, and not begin with {RESERVED}: it is the name of the Seed"
_PLACE: Final = f"metadata.namespace: must be {GARDEN_NAMESPACE}"
_OPERATION: Final = f"metadata.annotations[{OPERATION}]: must be one of {', '.join(OPERATIONS)}"


def problems(gardenlet: Gardenlet) -> Iterator[str]:
    """The broken rules, each with the path of its field."""
    name = gardenlet.metadata.name
    if gardenlet.metadata.namespace != GARDEN_NAMESPACE:
        yield _PLACE
    if name.startswith(RESERVED) or not re.fullmatch(_LABEL, name):
        yield _NAME
    if gardenlet.operation and gardenlet.operation not in OPERATIONS:
        yield _OPERATION
    place = gardenlet.spec.deployment.helm.oci_repository
    if not (place.ref or place.repository):
        yield "spec.deployment.helm.ociRepository: give ref, or repository with tag or digest"
    yield from config_problems(gardenlet.spec.config, name)


_API: Final = "admissionregistration.k8s.io/v1"
_POLICY: Final = f"{GARDENLETS.plural}.{GARDENLETS.group}"
_ASKED: Final = f"object.metadata.?annotations[?'{OPERATION}'].orValue('')"

POLICIES: Final[tuple[Object, ...]] = (
    {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": _POLICY},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [GARDENLETS.group],
                        "apiVersions": ["*"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [GARDENLETS.plural],
                    }
                ]
            },
            "validations": [
                {"expression": f"request.namespace == '{GARDEN_NAMESPACE}'", "message": _PLACE},
                {
                    "expression": f"object.metadata.name.matches('^{_LABEL}$')"
                    f" && !object.metadata.name.startsWith('{RESERVED}')",
                    "message": _NAME,
                },
                {"expression": f"{_ASKED} in {['', *OPERATIONS]!r}", "message": _OPERATION},
            ],
        },
    },
    {
        "apiVersion": _API,
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": _POLICY},
        "spec": {"policyName": _POLICY, "validationActions": ["Deny"]},
    },
)
