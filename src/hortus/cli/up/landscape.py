"""The converter configuration of `hortus up`: what Runtimes leave open, in a landscape where everything is simulated.

Written at each start, like the kubeconfigs. Another one is named in the configuration file of `hortus up`, as
`converter-config-filepath` of the controllers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from hortus.cli.up.state import StateDirectory, write_private

_OIDC = {
    "clientID": "simulated",
    "groupsClaim": "groups",
    "issuerURL": "https://accounts.example.org",
    "signingAlgs": ["RS256"],
    "usernameClaim": "sub",
    "usernamePrefix": "-",
}


def write_landscape(state: StateDirectory, project: str) -> Path:
    """Write it and the files it names; returns its path."""
    tenants, converter = state.path / "audit-tenants.json", state.path / "converter.json"
    write_private(tenants, b"{}\n")
    write_private(converter, orjson.dumps(_configuration(project, tenants), option=orjson.OPT_INDENT_2) + b"\n")
    return converter


def _configuration(project: str, tenants: Path) -> dict[str, Any]:
    return {
        "converter": {
            "kubernetes": {
                "defaultVersion": "1.34.1",
                "enableKubernetesVersionAutoUpdate": False,
                "enableMachineImageVersionVersionAutoUpdate": False,
                "defaultOperatorOidc": _OIDC,
            },
            "machineImage": {"defaultName": "gardenlinux", "defaultVersion": "1592.1.0"},
            "gardener": {"projectName": project},
            "auditLogging": {"policyConfigMapName": "audit-policy", "tenantConfigPath": str(tenants)},
            "provider": {"aws": {"enableIMDSv2": True}},
        },
        "cluster": {"defaultSharedIASTenant": _OIDC},
    }
