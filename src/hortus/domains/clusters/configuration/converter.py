"""The converter's configuration as structs; docs/clusters/configuration.md describes its keys.

Unknown keys are ignored, as in the Go system; a known key in the wrong place becomes a remark (see `keys`).
"""

from __future__ import annotations

from typing import Any

import msgspec
import orjson

from hortus.domains.clusters.configuration.checks import misplaced, problems_of
from hortus.domains.clusters.configuration.problems import ConfigurationError
from hortus.kube import Object, durations
from hortus.schema import FieldError

_SHORTEST_TOKEN = 30 * 24 * durations.HOUR
_LONGEST_TOKEN = 90 * 24 * durations.HOUR


class _Part(msgspec.Struct, frozen=True, rename="camel"):
    pass


class OidcDefaults(_Part, frozen=True):
    """An OpenID Connect provider."""

    client_id: str = msgspec.field(name="clientID")
    groups_claim: str
    issuer_url: str = msgspec.field(name="issuerURL")
    signing_algs: tuple[str, ...]
    username_claim: str
    username_prefix: str

    def as_object(self) -> Object:
        """The values as an `oidcConfig` of a Runtime."""
        fields: Object = msgspec.to_builtins(self, builtin_types=())
        return {**fields, "signingAlgs": list(self.signing_algs)}


class AclSource(_Part, frozen=True):
    config_map_name: str = ""


class ApiServerDefaults(_Part, frozen=True):
    """Settings of every cluster's API server."""

    max_token_expiration: str = ""
    acl: AclSource = AclSource()
    feature_gates: dict[str, bool] = {}
    runtime_config: dict[str, bool] = {}

    @property
    def token_expiration(self) -> str:
        """`max_token_expiration` within Gardener's bounds of 30 and 90 days; empty when not configured.

        The Go system takes its bounds for nanoseconds and asks for 2.592 ms; this one does not.
        """
        if not self.max_token_expiration:
            return ""
        wanted = durations.parse(self.max_token_expiration)
        return durations.format(min(max(wanted, _SHORTEST_TOKEN), _LONGEST_TOKEN))


class KubeletDefaults(_Part, frozen=True):
    feature_gates: dict[str, bool] = {}


class KubernetesDefaults(_Part, frozen=True):
    """The choices about Kubernetes that a Runtime leaves open."""

    default_version: str
    default_operator_oidc: OidcDefaults
    update_kubernetes: bool = msgspec.field(name="enableKubernetesVersionAutoUpdate", default=False)
    # The doubled word is the key of the Go system.
    update_images: bool = msgspec.field(name="enableMachineImageVersionVersionAutoUpdate", default=False)
    api_server: ApiServerDefaults = msgspec.field(name="kubeApiServer", default=ApiServerDefaults())
    kubelet: KubeletDefaults = KubeletDefaults()


class Dns(_Part, frozen=True):
    """The DNS provider of all clusters; all empty for a domain of Gardener's."""

    secret_name: str = ""
    domain_prefix: str = ""
    provider_type: str = ""

    @property
    def external(self) -> bool:
        return bool(self.secret_name or self.domain_prefix or self.provider_type)


class Aws(_Part, frozen=True):
    require_tokens: bool = msgspec.field(name="enableIMDSv2", default=False)


class Providers(_Part, frozen=True):
    aws: Aws = Aws()


class ImageDefaults(_Part, frozen=True):
    """The machine image of pools that name none."""

    default_name: str
    default_version: str


class GardenProject(_Part, frozen=True):
    project_name: str
    credentials_binding: bool = msgspec.field(name="enableCredentialBinding", default=False)

    @property
    def namespace(self) -> str:
        return f"garden-{self.project_name}"


class AuditLogging(_Part, frozen=True):
    policy_config_map_name: str
    tenant_config_path: str


class Maintenance(_Part, frozen=True):
    window_map_path: str = ""


class Converter(_Part, frozen=True):
    """The settings of the conversion of a Runtime to a Shoot."""

    kubernetes: KubernetesDefaults
    machine_image: ImageDefaults
    gardener: GardenProject
    audit_logging: AuditLogging
    dns: Dns = Dns()
    provider: Providers = Providers()
    maintenance_window: Maintenance = Maintenance()


class ClusterDefaults(_Part, frozen=True):
    """The choices about the inside of its cluster that a Runtime leaves open."""

    shared_tenant: OidcDefaults = msgspec.field(name="defaultSharedIASTenant")


class Configuration(_Part, frozen=True):
    """The whole document."""

    converter: Converter
    cluster: ClusterDefaults
    remarks: tuple[str, ...] = msgspec.field(name="<remarks>", default=())
    """Not of the document: keys in it that have no effect where they stand. To be logged at start."""


def parse_configuration(data: bytes, *, source: str = "the converter configuration") -> Configuration:
    """The configuration in a JSON document. Raises ConfigurationError with every problem; `source` names it there."""
    document = decoded(data, source)
    remarks = misplaced(document)
    if problems := problems_of(document):
        raise ConfigurationError(source, [*remarks, *problems])
    configuration = msgspec.convert(_without_nulls(document), Configuration)
    return msgspec.structs.replace(configuration, remarks=tuple(map(str, remarks)))


def decoded(data: bytes, source: str) -> object:
    """A JSON document's value. Raises ConfigurationError."""
    try:
        value: object = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        problem = FieldError("<document>", f"this is no JSON: {error}")
        raise ConfigurationError(source, [problem]) from error
    return value


def _without_nulls(value: Any) -> Any:
    """A null counts as absent, as it does for Go."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return value
