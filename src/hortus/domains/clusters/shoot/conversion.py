"""A Runtime as a Shoot: the object that is created (docs/clusters/shoot.md)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.pools import Pool, converted
from hortus.domains.clusters.shoot.bindings import binding
from hortus.domains.clusters.shoot.context import DEFAULT_CONTEXT, Context
from hortus.domains.clusters.shoot.extensions import audit_resource, created_extensions, domain_of
from hortus.domains.clusters.shoot.kubernetes import kubernetes, version
from hortus.domains.clusters.shoot.live import LiveShoot
from hortus.domains.clusters.shoot.placement import placement, tolerations
from hortus.domains.clusters.shoot.problems import ConversionError
from hortus.domains.clusters.shoot.profile import Offer
from hortus.domains.clusters.shoot.providers import IP_FAMILIES, Configs, created_configs
from hortus.domains.clusters.shoot.refusals import refusals
from hortus.domains.clusters.shoot.validation import blocking_problems, problems_of
from hortus.domains.clusters.shoot.workers import created_pools, pools_of, zones_of
from hortus.domains.clusters.shoots import SHOOTS, DnsProvider
from hortus.domains.clusters.types import Label, Networking, Runtime, RuntimeShoot, ShootAnnotation, ShootLabel
from hortus.gardener.shoots.fields import DNS_REFERENCE, is_forbidden
from hortus.kube import Object

PRODUCTION: Final = "production"


def shoot_for(
    runtime: Runtime, config: Configuration, context: Context = DEFAULT_CONTEXT, *, profile: Offer | None = None
) -> Object:
    """The Shoot to create for a Runtime. Shares parts with its arguments: read only.

    With a `profile`, the offer of the garden's CloudProfile, machine types, images, versions and zones are compared
    with it. Raises ConversionError with every problem, and NotReadable for a worker pool that is none.
    """
    if problems := blocking_problems(runtime):
        raise ConversionError(problems)
    wanted = runtime.wanted.shoot
    spec = common_spec(runtime, config, context)
    spec["provider"] = provider_part(wanted, created_pools(runtime, config), Configs({}, {}))
    spec["extensions"] = created_extensions(runtime, config, context)
    if tolerated := tolerations(wanted.region):
        spec["tolerations"] = tolerated
    if config.converter.dns.external:
        spec["dns"] = _dns(runtime, config)
    if context.tenant is not None:
        spec["resources"] = [audit_resource(context.tenant)]
    shoot = {**head(runtime, config, context), "spec": spec}
    own = problems_of(runtime, config, context, profile=profile)
    if problems := [*own, *refusals(runtime, shoot, besides=own)]:
        raise ConversionError(problems)
    # Subnets can be cut of good networks alone.
    spec["provider"] |= configs_part(created_configs(wanted, zones_of(pools_of(runtime))))
    return shoot


def head(runtime: Runtime, config: Configuration, context: Context) -> Object:
    """The Shoot without its spec."""
    labels, wanted = runtime.metadata.labels, runtime.wanted.shoot
    annotations = {
        ShootAnnotation.RUNTIME_ID: labels[Label.RUNTIME_ID],
        ShootAnnotation.RUNTIME_GENERATION: str(runtime.metadata.generation),
    }
    if wanted.licence_type:
        annotations[ShootAnnotation.LICENCE_TYPE] = wanted.licence_type
    return {
        "apiVersion": SHOOTS.api_version,
        "kind": SHOOTS.kind,
        "metadata": {
            "name": wanted.name,
            "namespace": config.converter.gardener.namespace,
            "annotations": annotations,
            "labels": {
                ShootLabel.ACCOUNT: labels[Label.GLOBAL_ACCOUNT_ID],
                ShootLabel.SUBACCOUNT: labels[Label.SUBACCOUNT_ID],
            },
        },
    }


def common_spec(runtime: Runtime, config: Configuration, context: Context, live: LiveShoot | None = None) -> Object:
    """The parts of the spec that creation and patches share."""
    wanted = runtime.wanted.shoot
    spec: Object = {
        "purpose": wanted.purpose,
        "region": wanted.region,
        **binding(runtime, config, context, live),
        "networking": _networking(wanted.networking, live),
        **placement(wanted, version(runtime, config, live)),
        "kubernetes": kubernetes(runtime, config, context, live),
        "maintenance": _maintenance(wanted, config, context),
    }
    if wanted.control_plane:
        spec["controlPlane"] = wanted.control_plane
    return spec


def provider_part(wanted: RuntimeShoot, pools: Iterable[Pool], configs: Configs) -> Object:
    return {
        "type": wanted.provider.type,
        "workers": [pool.raw for pool in pools],
        **configs_part(configs),
        "workersSettings": {"sshAccess": {"enabled": False}},
    }


def configs_part(configs: Configs) -> Object:
    return {"infrastructureConfig": configs.infrastructure, "controlPlaneConfig": configs.control_plane}


def _networking(wanted: Networking, live: LiveShoot | None) -> Object:
    """Ranges as the live Shoot writes them: they are the same ones, and the garden compares texts."""
    present = live.spec.networking.ranges if live is not None else {}
    ranges: Object = {name: present.get(name) or given for name, given in wanted.ranges.items()}
    networking = {"type": wanted.type, **ranges} if wanted.type else ranges
    return {**networking, "ipFamilies": list(IP_FAMILIES)} if wanted.dual_stack else networking


def _maintenance(wanted: RuntimeShoot, config: Configuration, context: Context) -> Object:
    defaults = config.converter.kubernetes
    maintenance: Object = {
        "autoUpdate": {
            "kubernetesVersion": defaults.update_kubernetes,
            "machineImageVersion": defaults.update_images,
        }
    }
    window = context.windows.get(wanted.region)
    if window is not None and wanted.purpose == PRODUCTION:
        maintenance["timeWindow"] = {"begin": window.begin, "end": window.end}
    return maintenance


def _dns(runtime: Runtime, config: Configuration) -> Object:
    dns, domain = config.converter.dns, domain_of(runtime, config)
    provider = {
        "domains": {"include": [domain]},
        "primary": True,
        "secretName": dns.secret_name,
        "type": dns.provider_type,
    }
    return {"domain": domain, "providers": [dns_provider(provider, version(runtime, config))]}


def dns_provider(provider: Object, kubernetes_version: str) -> Object:
    """A provider of `spec.dns` that names its Secret as Shoots of this version of Kubernetes do."""
    name = converted(provider, DnsProvider, "DNS provider").secret_name
    if not name or not is_forbidden(DNS_REFERENCE, kubernetes_version):
        return provider
    rest = {key: value for key, value in provider.items() if key != "secretName"}
    return {"credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": name}, **rest}
