"""Every key of the converter's configuration, as the table behind both the checks and the documentation.

The Go system ignores keys it does not know. So do we, but of a known key in the wrong place or under a former name we
say where it belongs: its author believes that it has an effect.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

KeyType = Literal["text", "true or false", "list of texts", "version", "duration", "gates"]


class Key(NamedTuple):
    """One key. `path` is dotted, from the root of the document."""

    path: str
    type: KeyType
    required: bool
    default: str
    meaning: str


def _oidc(parent: str, use: str) -> tuple[Key, ...]:
    return (
        Key(f"{parent}.clientID", "text", True, "", f"Client of the OpenID Connect provider that {use}."),
        Key(f"{parent}.groupsClaim", "text", True, "", "Claim with a user's groups."),
        Key(f"{parent}.issuerURL", "text", True, "", "Address of the provider."),
        Key(f"{parent}.signingAlgs", "list of texts", True, "", "Signature algorithms that are accepted."),
        Key(f"{parent}.usernameClaim", "text", True, "", "Claim with a user's name."),
        Key(f"{parent}.usernamePrefix", "text", True, "", "What is put before each user's name; `-` for nothing."),
    )


_KUBERNETES = "converter.kubernetes"
_API_SERVER = f"{_KUBERNETES}.kubeApiServer"

KEYS: Final[tuple[Key, ...]] = (
    Key(f"{_KUBERNETES}.defaultVersion", "version", True, "", "Kubernetes version of a Runtime that names none."),
    Key(
        f"{_KUBERNETES}.enableKubernetesVersionAutoUpdate",
        "true or false",
        False,
        "false",
        "Whether Gardener raises the patch version of Kubernetes in maintenance.",
    ),
    Key(
        # The doubled word is the key of the Go system.
        f"{_KUBERNETES}.enableMachineImageVersionVersionAutoUpdate",
        "true or false",
        False,
        "false",
        "Whether Gardener raises the machine image in maintenance. The doubled word is the real key.",
    ),
    *_oidc(f"{_KUBERNETES}.defaultOperatorOidc", "a Runtime without one of its own trusts"),
    Key(
        f"{_API_SERVER}.maxTokenExpiration",
        "duration",
        False,
        "Gardener's",
        "Longest life of a service account's token; kept between 720h and 2160h. Extended tokens are switched off.",
    ),
    Key(
        f"{_API_SERVER}.acl.configMapName",
        "text",
        False,
        "",
        "ConfigMap with the operator's own address ranges for API server ACLs. Needed once ACLs are switched on.",
    ),
    Key(f"{_API_SERVER}.featureGates", "gates", False, "", "Feature gates of each API server, name to true or false."),
    Key(f"{_API_SERVER}.runtimeConfig", "gates", False, "", "API groups switched on or off, as `--runtime-config`."),
    Key(f"{_KUBERNETES}.kubelet.featureGates", "gates", False, "", "Feature gates of each kubelet."),
    Key(
        "converter.dns.secretName", "text", False, "", "Secret in the garden with the credentials of the DNS provider."
    ),
    Key("converter.dns.domainPrefix", "text", False, "", "Domain below which each cluster gets `<shoot>.<domain>`."),
    Key("converter.dns.providerType", "text", False, "", "Type of the DNS provider, such as `aws-route53`."),
    Key(
        "converter.provider.aws.enableIMDSv2",
        "true or false",
        False,
        "false",
        "Whether machines on AWS serve instance metadata only to those who hold a token.",
    ),
    Key("converter.machineImage.defaultName", "text", True, "", "Machine image of a worker pool that names none."),
    Key("converter.machineImage.defaultVersion", "version", True, "", "Its version."),
    Key("converter.gardener.projectName", "text", True, "", "Gardener project; Shoots lie in `garden-<project>`."),
    Key(
        "converter.gardener.enableCredentialBinding",
        "true or false",
        False,
        "false",
        "Whether `secretBindingName` of a Runtime names a CredentialsBinding below Kubernetes 1.34 too.",
    ),
    Key(
        "converter.auditLogging.policyConfigMapName",
        "text",
        True,
        "",
        "ConfigMap in the garden with the audit policy of each API server.",
    ),
    Key("converter.auditLogging.tenantConfigPath", "text", True, "", "The audit tenant file."),
    Key(
        "converter.maintenanceWindow.windowMapPath",
        "text",
        False,
        "",
        "The maintenance window file. Without it Gardener chooses the window.",
    ),
    *_oidc("cluster.defaultSharedIASTenant", "is set up in a cluster whose Runtime lists none"),
)

MISPLACED: Final = {
    "kubernetes": "converter.kubernetes",
    "dns": "converter.dns",
    "provider": "converter.provider",
    "machineImage": "converter.machineImage",
    "gardener": "converter.gardener",
    "auditLogging": "converter.auditLogging",
    "maintenanceWindow": "converter.maintenanceWindow",
    "aws": "converter.provider.aws",
    "converter.aws": "converter.provider.aws",
    "defaultSharedIASTenant": "cluster.defaultSharedIASTenant",
    "kubernetes.enableMachineImageVersionAutoUpdate": f"{_KUBERNETES}.enableMachineImageVersionVersionAutoUpdate",
    f"{_KUBERNETES}.enableMachineImageVersionAutoUpdate": f"{_KUBERNETES}.enableMachineImageVersionVersionAutoUpdate",
}
"""Keys of former versions, or out of their place, and where they belong."""
