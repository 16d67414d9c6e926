"""An air gap tried against one Shoot, as the garden has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from hortus.domains.garden.airgap.config import AirGap, MirrorRegistry, read_config
from hortus.domains.garden.airgap.firewall import containerd_hosts, firewall_rules, network_policies
from hortus.domains.garden.airgap.names import AIRGAP
from hortus.domains.garden.airgap.networks import inside_networks
from hortus.domains.garden.airgap.topic import BUNDLE_FILE, AirGapReviewer
from hortus.domains.garden.extension.topic import ConfigReview
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.render.artifacts import TransferSettings
from hortus.render.oci import CredentialStore, OciClient, OciSettings
from hortus.terminal import CommandError


class TriedGap(msgspec.Struct, frozen=True, kw_only=True):
    """An air gap with its judgement."""

    shoot: GardenShoot
    gap: AirGap
    errors: tuple[str, ...]
    warnings: tuple[str, ...]

    def text(self, output: str) -> str:
        """The rules as text: nft, hosts or policies."""
        inside = inside_networks(self.shoot).cidrs
        if output == "nft":
            return firewall_rules(self.gap, inside=inside)
        if output == "hosts":
            return containerd_hosts(self.gap, bundle=BUNDLE_FILE if self.gap.registry.bundle else "")
        return yaml.dump_all(network_policies(self.gap, inside=inside))

    def registry(self, mirror: str) -> MirrorRegistry:
        """The mirror of the configuration, or the one of this address. Raises CommandError."""
        if not mirror:
            return self.gap.registry
        found = read_config({"registry": {"mirror": mirror}}, "")
        if found.errors:
            raise CommandError(f"--mirror: {found.errors[0].message}")
        return found.gap.registry


def try_gap(shoot: Object, *, config: Any = None) -> TriedGap:
    """The judgement of a Shoot's air gap, or of `config` in its place. Raises CommandError."""
    read = msgspec.convert(shoot, GardenShoot)
    entry = read.extension(AIRGAP)
    if entry is None and config is None:
        raise CommandError(f"Shoot {read.metadata.name} has no extension {AIRGAP}: try a configuration with --config")
    index, own = (entry[0], entry[1].provider_config) if entry is not None else (0, None)
    written = own if config is None else _gap_of(config)
    path = f"spec.extensions[{index}].providerConfig"
    found = AirGapReviewer().review(ConfigReview(config=written, shoot=read, path=path))
    return TriedGap(
        shoot=read,
        gap=read_config(written, path).gap,
        errors=tuple(map(str, found.errors)),
        warnings=found.warnings,
    )


def _gap_of(config: Any) -> Any:
    """The configuration in a file: alone, or as providerConfig."""
    if isinstance(config, Mapping) and "providerConfig" in config:
        return msgspec.convert(config, dict[str, Any]).pop("providerConfig")
    return config


def mirror_client(registry: MirrorRegistry, *, ca: bytes = b"", credentials: bytes = b"") -> OciClient:
    """A client of the mirror, which may be in the own network. Raises BadCredentials."""
    place = registry.mirror.partition("://")[2].partition("/")[0]
    plain = registry.mirror.startswith("http://")
    transfer = TransferSettings(
        attempts=1,
        ca=ca,
        local_hosts=frozenset({place, registry.host}),
        plain_http=frozenset({place, registry.host} if plain else ()),
    )
    store = CredentialStore.from_docker_config(credentials) if credentials else CredentialStore()
    return OciClient(settings=OciSettings(transfer=transfer), credentials=store)
