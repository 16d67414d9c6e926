"""The operator's choices for auditing: flags, and the ControllerConfiguration of the Go extension."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from hortus import __version__
from hortus.domains.garden.audit.plan import MODES, AuditBackends
from hortus.engine.flags import Flag, FlagError

CONFIG_FLAG: Final = "audit-config"
BUFFER_FLAG: Final = "audit-buffer"
FLUENT_BIT: Final = "fluent-bit"
RECEIVER: Final = "hortus"
BUFFERS: Final = (FLUENT_BIT, RECEIVER)

FLAGS: Final = (
    Flag(
        BUFFER_FLAG,
        "string",
        FLUENT_BIT,
        f"Buffer of the audit events of Shoots: {FLUENT_BIT}, or {RECEIVER} for `hortus garden audit serve`, whose "
        "spool shows alterations.",
    ),
    Flag(
        CONFIG_FLAG,
        "string",
        "",
        "File with the ControllerConfiguration of the audit extension: defaultBackends, defaultWebhookMode and "
        "allowCustomBackends.",
    ),
    Flag(
        "audit-secrets-namespace",
        "string",
        "",
        "Namespace in the seed of the Secrets that defaultBackends name.",
    ),
    Flag("audit-secrets-prefix", "string", "", "Begin of the names of these Secrets, which defaultBackends leave out."),
    Flag("audit-fluent-bit-image", "string", "fluent/fluent-bit:5.0.9", "Image of fluent-bit, 5.0 or newer."),
    Flag("audit-receiver-image", "string", f"hortus:{__version__}", "Image of Hortus in which the receiver runs."),
    Flag("audit-tailer-image", "string", "fluent/fluentd:v1.16-1", "Image of fluentd, for clusterForwarding."),
    Flag(
        "audit-vpn-gateway-image",
        "string",
        "ghcr.io/metal-stack/gardener-vpn-gateway:v0.1.1",
        "Image of the gateway to Shoots, for clusterForwarding.",
    ),
)


class AuditChoices(msgspec.Struct, frozen=True, kw_only=True):
    """The choices."""

    buffer: str = FLUENT_BIT
    default_mode: str = ""
    """Mode of webhooks where the Shoot has none."""
    defaults: AuditBackends = AuditBackends()
    """Backends that a Shoot has unless it writes something else."""
    allow_custom: bool = False
    """True where owners of Shoots may write outputs of fluent-bit."""
    secrets_namespace: str = ""
    secrets_prefix: str = ""
    fluent_bit_image: str = ""
    receiver_image: str = ""
    tailer_image: str = ""
    gateway_image: str = ""

    @property
    def is_receiver(self) -> bool:
        """True where events are kept by our own receiver."""
        return self.buffer == RECEIVER


class _Configuration(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    api_version: str = ""
    kind: Literal["", "ControllerConfiguration"] = ""
    default_backends: Any = None
    default_webhook_mode: str = ""
    allow_custom_backends: bool = False
    health_check_config: Any = None
    """The periods of Gardener's library for health checks, which are not used: outputs have one of their own."""
    client_connection: Any = None


def audit_settings(values: Mapping[str, Any]) -> AuditChoices:
    """The choices that flags make. Raises FlagError."""
    if values[BUFFER_FLAG] not in BUFFERS:
        raise FlagError(
            f"invalid value {values[BUFFER_FLAG]!r} for flag --{BUFFER_FLAG}: must be {' or '.join(BUFFERS)}"
        )
    for name in ("fluent-bit", "receiver", "tailer", "vpn-gateway"):
        if not values[f"audit-{name}-image"]:
            raise FlagError(f"flag --audit-{name}-image is empty: name an image")
    found, defaults = _configuration(values[CONFIG_FLAG])
    named = [one for _, one in defaults.enabled() if getattr(one, "secret", "")]
    if named and not values["audit-secrets-namespace"]:
        raise FlagError(
            f"flag --audit-secrets-namespace is empty: defaultBackends of --{CONFIG_FLAG} name Secrets; give their "
            "namespace in the seed"
        )
    return AuditChoices(
        buffer=values[BUFFER_FLAG],
        default_mode=found.default_webhook_mode,
        defaults=defaults,
        allow_custom=found.allow_custom_backends,
        secrets_namespace=values["audit-secrets-namespace"],
        secrets_prefix=values["audit-secrets-prefix"],
        fluent_bit_image=values["audit-fluent-bit-image"],
        receiver_image=values["audit-receiver-image"],
        tailer_image=values["audit-tailer-image"],
        gateway_image=values["audit-vpn-gateway-image"],
    )


def _configuration(place: str) -> tuple[_Configuration, AuditBackends]:
    """The file, checked. Raises FlagError."""
    if not place:
        return _Configuration(), AuditBackends()
    from hortus.domains.garden.audit.backends import read_backends
    from hortus.kube import yaml

    problem = f"invalid value {place!r} for flag --{CONFIG_FLAG}: "
    try:
        found = msgspec.convert(yaml.load(Path(place).read_bytes()), _Configuration)
    except OSError as error:
        raise FlagError(f"{problem}{error.strerror}") from None
    except (ValueError, msgspec.ValidationError) as error:
        raise FlagError(f"{problem}{error}") from None
    if found.default_webhook_mode and found.default_webhook_mode not in MODES:
        raise FlagError(f"{problem}defaultWebhookMode must be one of {', '.join(MODES)}")
    backends, errors = read_backends(found.default_backends, "defaultBackends")
    if errors:
        raise FlagError(problem + "; ".join(map(str, errors)))
    return found, backends
