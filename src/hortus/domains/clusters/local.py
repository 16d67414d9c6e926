"""The converter configuration of `hortus up`: defaults of Runtimes in a landscape where everything is simulated.

It is written at each start, like the kubeconfigs. Another one is named in the configuration file of `hortus up`, as
`converter-config-filepath` of the controllers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from hortus.domains import LocalSetup

_OIDC = {
    "clientID": "simulated",
    "groupsClaim": "groups",
    "issuerURL": "https://accounts.example.org",
    "signingAlgs": ["RS256"],
    "usernameClaim": "sub",
    "usernamePrefix": "-",
}


def local_setup(folder: Path, project: str) -> LocalSetup:
    """The configuration and the file of tenants that it names, in `folder`."""
    tenants, converter = folder / "audit-tenants.json", folder / "converter.json"
    configuration = orjson.dumps(_configuration(project, tenants), option=orjson.OPT_INDENT_2) + b"\n"
    return LocalSetup(
        flags=(f"--converter-config-filepath={converter}", "--audit-log-mandatory=false"),
        files={tenants: b"{}\n", converter: configuration},
    )


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
