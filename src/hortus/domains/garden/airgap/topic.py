"""The air gap of one Shoot: NetworkPolicies, and the files of its nodes in a ConfigMap.

Reads: the Secret with the authorities of the mirror. Writes nothing itself: the frame hands the objects to
gardener-resource-manager.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import msgspec
from cryptography import x509

from hortus.domains.garden.airgap.config import ENFORCE, AirGap, read_config
from hortus.domains.garden.airgap.endpoints import endpoints_of, lacking
from hortus.domains.garden.airgap.firewall import containerd_hosts, firewall_rules, network_policies
from hortus.domains.garden.airgap.names import (
    BUNDLE_KEY,
    FACTS,
    FIREWALL_FILE,
    HOSTS_FILE,
    RULES,
    RULES_NAMESPACE,
    SECRETS,
)
from hortus.domains.garden.airgap.networks import inside_networks
from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.nodes import NodeFile, NodeParts, NodeUnit, node_webhook
from hortus.domains.garden.extension.references import referenced
from hortus.domains.garden.extension.topic import (
    ConfigFindings,
    ConfigReview,
    ConfigReviewer,
    ExtensionFacts,
    ExtensionTopic,
    SeedWebhook,
    TopicCondition,
    TopicObjects,
)
from hortus.domains.garden.kinds.seedcluster import GardenShoot
from hortus.engine import NEVER, Actor, StepError
from hortus.kube.errors import NotFound
from hortus.kube.objects import Object
from hortus.schema import FieldError
from hortus.schema.problems import required

COVERED: Final = "DestinationsAllowed"
"""The condition that reports whether the allow-list has all that nodes need."""
BUNDLE_FILE: Final = "/etc/containerd/certs.d/_default/ca.crt"
HOSTS_PATH: Final = "/etc/containerd/certs.d/_default/hosts.toml"
RULES_PATH: Final = "/etc/hortus/airgap.nft"
UNIT: Final = "hortus-airgap.service"
UNIT_TEXT: Final = f"""\
[Unit]
Description=Destinations that this node may call
DefaultDependencies=no
After=systemd-modules-load.service local-fs.target
Before=network-pre.target
Wants=network-pre.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/sbin/nft -f {RULES_PATH}
[Install]
WantedBy=multi-user.target
"""


class AirGapReviewer(ConfigReviewer):
    """Judges configurations of air gaps. Pure."""

    facts: ClassVar[ExtensionFacts] = FACTS

    def review(self, review: ConfigReview) -> ConfigFindings:
        found = read_config(review.config, review.path)
        networks = inside_networks(review.shoot)
        errors, warnings = [*found.errors, *networks.errors], list(found.warnings)
        if found.gap.is_enforced and not networks.has_nodes and not networks.errors:
            problem = f"{ENFORCE} needs the network of the nodes, which else could not call each other"
            errors.append(required("spec.networking.nodes", problem))
        if name := found.gap.registry.bundle:
            path = f"{review.path}.registry.caBundleSecretReferenceName"
            copy = referenced(review.shoot, name, kind="Secret", path=path)
            errors += [copy] if isinstance(copy, FieldError) else []
        if not errors:
            missing = lacking(endpoints_of(review.shoot, found.gap))
            warnings += [
                f"{review.path}.allow: no entry has {one.host} {one.port}/{one.protocol}, for: {one.purpose}"
                for one in missing
            ]
        return ConfigFindings(tuple(errors), tuple(warnings))


class AirGapTopic(AirGapReviewer, ExtensionTopic):
    """Renders air gaps for Shoots of one seed."""

    def __init__(self, view: SeedView) -> None:
        self._view = view

    def webhooks(self) -> Sequence[SeedWebhook]:
        return (node_webhook(self, self._view.clusters, node_parts),)

    def dependencies(self, context: ExtensionContext) -> str:
        return " ".join(map(str, inside_networks(context.shoot).cidrs))

    async def render(self, context: ExtensionContext) -> TopicObjects | None:
        gap = read_config(context.config, "spec.providerConfig").gap
        bundle = await _bundle(context, gap)
        networks = inside_networks(context.shoot).cidrs
        policies = network_policies(gap, inside=networks) if gap.is_enforced else []
        files = {
            FIREWALL_FILE: firewall_rules(gap, inside=networks),
            HOSTS_FILE: containerd_hosts(gap, bundle=BUNDLE_FILE if bundle else ""),
            "mode": gap.mode,
            BUNDLE_KEY: bundle,
        }
        config_map: Object = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": RULES, "namespace": RULES_NAMESPACE},
            "data": {name: text for name, text in files.items() if text},
        }
        return TopicObjects(shoot=(config_map, *policies), conditions=(_covered(context.shoot, gap),))


def node_parts(shoot: GardenShoot, config: Any) -> NodeParts:
    """The files and the unit on nodes, for a configuration without errors."""
    gap = read_config(config, "").gap
    copy = referenced(shoot, gap.registry.bundle, kind="Secret", path="") if gap.registry.bundle else ""
    files = [NodeFile(path=RULES_PATH, text=firewall_rules(gap, inside=inside_networks(shoot).cidrs))]
    if copy:
        files.append(NodeFile(path=BUNDLE_FILE, secret=str(copy), key=BUNDLE_KEY))
    if hosts := containerd_hosts(gap, bundle=BUNDLE_FILE if copy else ""):
        files.append(NodeFile(path=HOSTS_PATH, text=hosts))
    return NodeParts(files=tuple(files), units=(NodeUnit(name=UNIT, text=UNIT_TEXT, files=(RULES_PATH,)),))


def _covered(shoot: GardenShoot, gap: AirGap) -> TopicCondition:
    missing = lacking(endpoints_of(shoot, gap))
    if not missing:
        return TopicCondition(COVERED, "True", "AllAllowed", "The list has every destination that nodes need.")
    names = ", ".join(f"{one.host} {one.port}/{one.protocol}" for one in missing)
    return TopicCondition(COVERED, "False", "DestinationsMissing", f"No entry of the list has: {names}.")


class _SecretBody(msgspec.Struct):
    data: dict[str, str] = {}


async def _bundle(context: ExtensionContext, gap: AirGap) -> str:
    """The certificates of the mirror's authorities; empty for none. Raises StepError."""
    name = gap.registry.bundle
    if not name:
        return ""
    path = "spec.providerConfig.registry.caBundleSecretReferenceName"
    copy = referenced(context.shoot, name, kind="Secret", path=path)
    assert isinstance(copy, str), "the configuration was judged before"
    try:
        found = await context.seed.get(SECRETS, copy, context.namespace)
    except NotFound:
        problem = f"{path}: Secret {context.namespace}/{copy} does not exist: gardenlet copies it from the garden"
        raise StepError(problem, reason="BundleMissing", actor=Actor.PROVIDER) from None
    data = msgspec.convert(found, _SecretBody).data
    try:
        text = base64.b64decode(data.get(BUNDLE_KEY, ""), validate=True)
        x509.load_pem_x509_certificates(text)
        alone = data.keys() == {BUNDLE_KEY}
    except (binascii.Error, ValueError):
        alone = False
    if not alone:
        problem = f"{path}: Secret {name} must have {BUNDLE_KEY} alone, with certificates in PEM"
        raise StepError(problem, reason="BundleInvalid", actor=Actor.USER, after=NEVER)
    return text.decode()
