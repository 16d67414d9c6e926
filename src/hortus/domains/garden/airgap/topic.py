"""The air gap of one Shoot: NetworkPolicies, and the files of its nodes in a ConfigMap.

Reads: the Secrets with the authorities of the mirror and with its user. Writes nothing itself: the frame hands the
objects to gardener-resource-manager.
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
    HOSTS_SECRET,
    RULES,
    RULES_NAMESPACE,
    SECRETS,
    USER_KEYS,
)
from hortus.domains.garden.airgap.networks import inside_networks
from hortus.domains.garden.extension.composition import SeedView
from hortus.domains.garden.extension.context import ExtensionContext
from hortus.domains.garden.extension.nodes import PRIVATE, NodeFile, NodeParts, NodeUnit, node_webhook
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
from hortus.kube.secret import Secret
from hortus.schema import FieldError
from hortus.schema.problems import required

COVERED: Final = "DestinationsAllowed"
"""The condition that reports whether the allow-list has all that nodes need."""
BUNDLE_FILE: Final = "/etc/containerd/certs.d/_default/ca.crt"
_REGISTRY: Final = "spec.providerConfig.registry"
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
        registry = found.gap.registry
        for name, field in ((registry.bundle, "caBundleSecretReferenceName"), (registry.secret, "secretReferenceName")):
            if name:
                copy = referenced(review.shoot, name, kind="Secret", path=f"{review.path}.registry.{field}")
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
        bundle, user = await _bundle(context, gap), await _user(context, gap)
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
        seed = (_hosts(context.namespace, gap, bundle, user),) if user is not None else ()
        return TopicObjects(seed=seed, shoot=(config_map, *policies), conditions=(_covered(context.shoot, gap),))


def node_parts(shoot: GardenShoot, config: Any) -> NodeParts:
    """The files and the unit on nodes, for a configuration without errors."""
    gap = read_config(config, "").gap
    copy = referenced(shoot, gap.registry.bundle, kind="Secret", path="") if gap.registry.bundle else ""
    files = [NodeFile(path=RULES_PATH, text=firewall_rules(gap, inside=inside_networks(shoot).cidrs))]
    if copy:
        files.append(NodeFile(path=BUNDLE_FILE, secret=str(copy), key=BUNDLE_KEY))
    if gap.registry.secret:
        files.append(NodeFile(path=HOSTS_PATH, secret=HOSTS_SECRET, key=HOSTS_FILE, mode=PRIVATE))
    elif hosts := containerd_hosts(gap, bundle=BUNDLE_FILE if copy else ""):
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


async def _data(context: ExtensionContext, name: str, path: str, *, reason: str) -> dict[str, str]:
    """The data of the Secret that the field at `path` names. Raises StepError, KubeError."""
    copy = referenced(context.shoot, name, kind="Secret", path=path)
    assert isinstance(copy, str), "the configuration was judged before"
    try:
        found = await context.seed.get(SECRETS, copy, context.namespace)
    except NotFound:
        problem = f"{path}: Secret {context.namespace}/{copy} does not exist: gardenlet copies it from the garden"
        raise StepError(problem, reason=reason, actor=Actor.PROVIDER) from None
    return msgspec.convert(found, _SecretBody).data


async def _user(context: ExtensionContext, gap: AirGap) -> Secret | None:
    """The name and the password for the mirror, with a colon between; None for none. Raises StepError, KubeError."""
    name = gap.registry.secret
    if not name:
        return None
    path = f"{_REGISTRY}.secretReferenceName"
    data = await _data(context, name, path, reason="CredentialsMissing")
    try:
        user, password = (base64.b64decode(data.get(key, ""), validate=True).decode() for key in USER_KEYS)
        whole = data.keys() == set(USER_KEYS) and bool(user and password) and ":" not in user
    except (binascii.Error, ValueError):
        whole, user, password = False, "", ""
    if not whole:
        problem = f"{path}: Secret {name} must have username and password alone, and no colon in the username"
        raise StepError(problem, reason="CredentialsInvalid", actor=Actor.USER, after=NEVER)
    return Secret(f"{user}:{password}")


def _hosts(namespace: str, gap: AirGap, bundle: str, user: Secret) -> Object:
    """The Secret from which nodes get the hosts of containerd."""
    text = containerd_hosts(gap, bundle=BUNDLE_FILE if bundle else "", user=user)
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": HOSTS_SECRET, "namespace": namespace},
        "type": "Opaque",
        "data": {HOSTS_FILE: base64.b64encode(text.encode()).decode()},
    }


async def _bundle(context: ExtensionContext, gap: AirGap) -> str:
    """The certificates of the mirror's authorities; empty for none. Raises StepError."""
    name = gap.registry.bundle
    if not name:
        return ""
    path = f"{_REGISTRY}.caBundleSecretReferenceName"
    data = await _data(context, name, path, reason="BundleMissing")
    try:
        text = base64.b64decode(data.get(BUNDLE_KEY, ""), validate=True)
        x509.load_pem_x509_certificates(text)
        found, alone = text.decode(), data.keys() == {BUNDLE_KEY}
    except (binascii.Error, ValueError):
        found, alone = "", False
    if not alone:
        problem = f"{path}: Secret {name} must have {BUNDLE_KEY} alone, with certificates in PEM"
        raise StepError(problem, reason="BundleInvalid", actor=Actor.USER, after=NEVER)
    return found
