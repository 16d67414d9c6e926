"""The power that authors of Runtimes have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hortus.domains.clusters.types import RUNTIMES
from hortus.engine.powers import IN_INVENTORY, Power
from hortus.kube.objects import Resource

POWERS: Final[Mapping[Resource, Power]] = {
    RUNTIMES: Power(
        "Shoots of the garden's project, created, adopted, changed and deleted, with any SecretBinding and "
        "CredentialsBinding of it; users "
        "who are cluster-admin in the cluster.",
        "The same as far as the deputy may create, patch and delete `shoots`, get `secretbindings` or "
        "`credentialsbindings` and patch "
        "`configmaps` in the namespace of the project, and get the Secret with the kubeconfig for work inside the "
        "cluster.",
        IN_INVENTORY,
    ),
}
