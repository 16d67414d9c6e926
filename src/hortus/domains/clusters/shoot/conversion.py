"""A Runtime as a Shoot: the object that is created (section 3.0)."""

from __future__ import annotations

from typing import Final

from hortus.domains.clusters.configuration import Configuration
from hortus.domains.clusters.shoot.context import DEFAULT_CONTEXT, Context
from hortus.domains.clusters.shoot.extensions import audit_resource, created_extensions, domain_of
from hortus.domains.clusters.shoot.kubernetes import kubernetes, version
from hortus.domains.clusters.shoot.networks import RANGES
from hortus.domains.clusters.shoot.placement import placement, tolerations
from hortus.domains.clusters.shoot.problems import ConversionError
from hortus.domains.clusters.shoot.providers import IP_FAMILIES, Configs, created_configs
from hortus.domains.clusters.shoot.validation import problems_of
from hortus.domains.clusters.shoot.workers import created_pools, pools_of, zones_of
from hortus.domains.clusters.types import Label, ShootAnnotation
from hortus.domains.credentials.types import Annotation
from hortus.kube import Object, Resource

SHOOTS: Final = Resource("core.gardener.cloud", "v1beta1", "shoots", "Shoot")
PRODUCTION: Final = "production"


def shoot_for(
    runtime: Object, config: Configuration, context: Context = DEFAULT_CONTEXT, *, profile: Object | None = None
) -> Object:
    """The Shoot to create for a Runtime. Shares parts with its arguments: read only.

    With a `profile`, the CloudProfile of the garden, machine types, images, versions and zones are held against it.
    Raises ConversionError with every problem.
    """
    if problems := problems_of(runtime, config, context, profile=profile):
        raise ConversionError(problems)
    wanted = runtime["spec"]["shoot"]
    spec = common_spec(runtime, config, context)
    configs = created_configs(wanted, zones_of(pools_of(runtime)))
    spec["provider"] = provider_part(wanted, created_pools(runtime, config), configs)
    spec["extensions"] = created_extensions(runtime, config, context)
    if tolerated := tolerations(wanted["region"]):
        spec["tolerations"] = tolerated
    if config.converter.dns.external:
        spec["dns"] = _dns(runtime, config)
    if context.tenant is not None:
        spec["resources"] = [audit_resource(context.tenant)]
    return {**head(runtime, config, context), "spec": spec}


def head(runtime: Object, config: Configuration, context: Context) -> Object:
    """Everything of the Shoot but its spec."""
    metadata = runtime["metadata"]
    labels, wanted = metadata["labels"], runtime["spec"]["shoot"]
    annotations = {
        ShootAnnotation.RUNTIME_ID: labels[Label.RUNTIME_ID],
        ShootAnnotation.RUNTIME_GENERATION: str(metadata.get("generation", 0)),
    }
    if context.allowed_namespace:
        annotations[Annotation.ALLOWED_NAMESPACES] = context.allowed_namespace
    if wanted.get("licenceType"):
        annotations[ShootAnnotation.LICENCE_TYPE] = wanted["licenceType"]
    return {
        "apiVersion": SHOOTS.api_version,
        "kind": SHOOTS.kind,
        "metadata": {
            "name": wanted["name"],
            "namespace": config.converter.gardener.namespace,
            "annotations": annotations,
            "labels": {"account": labels[Label.GLOBAL_ACCOUNT_ID], "subaccount": labels[Label.SUBACCOUNT_ID]},
        },
    }


def common_spec(runtime: Object, config: Configuration, context: Context, live: Object | None = None) -> Object:
    """The parts of the spec that creation and patches share."""
    wanted = runtime["spec"]["shoot"]
    spec: Object = {
        "purpose": wanted["purpose"],
        "region": wanted["region"],
        "secretBindingName": wanted["secretBindingName"],
        "networking": _networking(wanted, live),
        **placement(wanted, version(runtime, config, live)),
        "kubernetes": kubernetes(runtime, config, context, live),
        "maintenance": _maintenance(wanted, config, context),
    }
    if wanted.get("controlPlane"):
        spec["controlPlane"] = wanted["controlPlane"]
    return spec


def provider_part(wanted: Object, pools: list[Object], configs: Configs) -> Object:
    return {
        "type": wanted["provider"]["type"],
        "workers": pools,
        "infrastructureConfig": configs.infrastructure,
        "controlPlaneConfig": configs.control_plane,
        "workersSettings": {"sshAccess": {"enabled": False}},
    }


def _networking(wanted: Object, live: Object | None) -> Object:
    """Ranges as the live Shoot writes them: they are the same ones, and the garden compares texts."""
    given = wanted["networking"]
    present = ((live or {}).get("spec") or {}).get("networking") or {}
    ranges = {name: present.get(name) or given[name] for name in RANGES}
    networking = {"type": given["type"], **ranges} if given.get("type") else ranges
    return {**networking, "ipFamilies": list(IP_FAMILIES)} if given.get("dualStack") else networking


def _maintenance(wanted: Object, config: Configuration, context: Context) -> Object:
    defaults = config.converter.kubernetes
    maintenance: Object = {
        "autoUpdate": {
            "kubernetesVersion": defaults.update_kubernetes,
            "machineImageVersion": defaults.update_images,
        }
    }
    window = context.windows.get(wanted["region"])
    if window is not None and wanted["purpose"] == PRODUCTION:
        maintenance["timeWindow"] = {"begin": window.begin, "end": window.end}
    return maintenance


def _dns(runtime: Object, config: Configuration) -> Object:
    dns, domain = config.converter.dns, domain_of(runtime, config)
    provider = {
        "domains": {"include": [domain]},
        "primary": True,
        "secretName": dns.secret_name,
        "type": dns.provider_type,
    }
    return {"domain": domain, "providers": [provider]}
