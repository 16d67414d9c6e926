"""Resolution of modules: from a Kyma and the catalog to the version of each module, or the reason against it.

Pure: the catalog, the time and the maintenance policy are parameters. The order of the checks is part of the contract,
because the first one that fails decides the module's status.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple, Protocol

from hortus.domains.modules.kinds.moduletemplate import RAW_MANIFEST
from hortus.domains.modules.kyma.dependencies import DependencyError, dependencies_of, missing
from hortus.domains.modules.kyma.windows import MaintenancePolicy, WindowUnknown
from hortus.domains.modules.names import Annotation, Label, is_true
from hortus.domains.modules.types import Kyma, Module, ModuleReleaseMeta, ModuleStatus, ModuleTemplate
from hortus.kube.selectors import LabelSelector
from hortus.kube.versions import Version, VersionError

DEFAULT_CHANNEL = "regular"
NO_CHANNEL = "none"


class Catalog(Protocol):
    """The modules that a control plane offers."""

    def release(self, name: str) -> ModuleReleaseMeta | None:
        """The ModuleReleaseMeta of that name in the Kyma's namespace."""

    def template(self, name: str) -> ModuleTemplate | None:
        """The ModuleTemplate of that name in the Kyma's namespace."""


class ModuleRefusal(StrEnum):
    """A reason for which a module is not installed or upgraded."""

    INVALID = "Invalid"
    NO_RELEASE = "NoRelease"
    NO_VERSION = "NoVersion"
    NO_TEMPLATE = "NoTemplate"
    MANDATORY = "Mandatory"
    NOT_ALLOWED = "NotAllowed"
    DOWNGRADE = "Downgrade"
    WAITS_FOR_WINDOW = "WaitsForWindow"
    WINDOW_UNKNOWN = "WindowUnknown"
    WAITS_FOR_MODULES = "WaitsForModules"
    NO_COMPONENT = "NoComponent"


class ResolvedModule(NamedTuple):
    """A module and its version."""

    module: Module
    channel: str
    version: str
    template: ModuleTemplate
    component: str
    """Name of the component in the registry; the module's where it is in none."""
    link: str = ""
    """Address of a plain manifest, in place of a component."""
    external: bool = False
    """True where others install the module's operator."""
    mandatory: bool = False
    """True where its release installs it in all clusters, listed or not."""

    @property
    def source(self) -> str:
        """The name by which the objects are asked for."""
        return self.link or self.component


class RefusedModule(NamedTuple):
    """A module that is not installed or upgraded now."""

    module: Module
    refusal: ModuleRefusal
    message: str
    channel: str = ""
    component: str = ""


Resolution = ResolvedModule | RefusedModule


class ModuleTerms(NamedTuple):
    """The operator's terms for modules."""

    restricted: frozenset[str] = frozenset()
    """Modules that only selected Kymas may use."""
    windows: MaintenancePolicy | None = None
    """None where the policy could not be read."""
    downgrades: bool = False
    """True where an installed module may get a lower version."""


class _Refused(Exception):
    def __init__(self, refusal: ModuleRefusal, message: str) -> None:
        super().__init__(message)
        self.refusal = refusal


def resolve(kyma: Kyma, catalog: Catalog, terms: ModuleTerms, now: float) -> list[Resolution]:
    """A resolution for each module of the Kyma's spec, in its order. `now` is in seconds since the epoch."""
    installed = {status.name: status for status in kyma.status.modules}
    return [_resolution(kyma, module, installed, catalog, terms, now) for module in kyma.spec.modules]


def removed(kyma: Kyma) -> list[ModuleStatus]:
    """The modules of the status that the spec does not list any more."""
    listed = {module.name for module in kyma.spec.modules}
    return [status for status in kyma.status.modules if status.name not in listed]


def _resolution(
    kyma: Kyma,
    module: Module,
    installed: Mapping[str, ModuleStatus],
    catalog: Catalog,
    terms: ModuleTerms,
    now: float,
) -> Resolution:
    channel = module.channel or kyma.spec.channel or DEFAULT_CHANNEL
    release: ModuleReleaseMeta | None = None
    try:
        if NO_CHANNEL in ((module.channel or "").lower(), kyma.spec.channel.lower()):
            raise _Refused(
                ModuleRefusal.INVALID, f'channel "{NO_CHANNEL}" is not allowed; name a channel of the catalog'
            )
        release = _release(module, catalog)
        version = _version(release, channel)
        template = _template(module, version, catalog)
        status = installed.get(module.name)
        _check_window(kyma, template, version, status, terms.windows, now)
        _check_allowed(kyma, release, template, terms.restricted)
        if not terms.downgrades:
            _check_upgrade(template, channel, status)
        _check_dependencies(template, installed, status)
    except _Refused as refused:
        component = release.spec.ocm_component_name if release else ""
        return RefusedModule(module, refused.refusal, str(refused), channel, component)
    component, mandatory = release.spec.ocm_component_name, release.spec.mandatory is not None
    if is_true(template.metadata.annotations, Annotation.EXTERNAL_OPERATOR):
        name = component or module.name
        return ResolvedModule(module, channel, version, template, name, external=True, mandatory=mandatory)
    link = "" if component else link_of(template)
    if not component and not link.startswith("https://"):
        message = (
            f"ModuleReleaseMeta {module.name} has no spec.ocmComponentName; set it to the component's name, or give "
            f"ModuleTemplate {template.metadata.name} a resource {RAW_MANIFEST} with an https address"
        )
        return RefusedModule(module, ModuleRefusal.NO_COMPONENT, message, channel)
    name = component or module.name
    return ResolvedModule(module, channel, version, template, name, link=link, mandatory=mandatory)


def link_of(template: ModuleTemplate) -> str:
    """The address of a module's plain manifest; empty where it has none."""
    return next((one.link for one in template.spec.resources if one.name == RAW_MANIFEST), "")


def _release(module: Module, catalog: Catalog) -> ModuleReleaseMeta:
    release = catalog.release(module.name)
    if release is None:
        raise _Refused(ModuleRefusal.NO_RELEASE, f"no ModuleReleaseMeta found for module {module.name}")
    return release


def _version(release: ModuleReleaseMeta, channel: str) -> str:
    spec = release.spec
    if spec.mandatory is not None:
        return spec.mandatory.version
    if not spec.channels:
        raise _Refused(ModuleRefusal.NO_VERSION, f"no channels found for module {release.metadata.name}")
    for one in spec.channels:
        if one.channel == channel:
            return one.version
    offered = ", ".join(sorted(one.channel for one in spec.channels))
    message = f"no versions found for channel {channel} of module {release.metadata.name}; its channels are {offered}"
    raise _Refused(ModuleRefusal.NO_VERSION, message)


def _template(module: Module, version: str, catalog: Catalog) -> ModuleTemplate:
    name = template_name(module.name, version)
    template = catalog.template(name)
    if template is None:
        raise _Refused(ModuleRefusal.NO_TEMPLATE, f"ModuleTemplate {name} does not exist; publish it")
    return template


def template_name(module: str, version: str) -> str:
    """Name of the ModuleTemplate of one version of a module."""
    return f"{module}-{version}"


def _check_window(
    kyma: Kyma,
    template: ModuleTemplate,
    version: str,
    status: ModuleStatus | None,
    policy: MaintenancePolicy | None,
    now: float,
) -> None:
    if not template.spec.requires_downtime or kyma.spec.skip_maintenance_windows:
        return
    if status is None or status.version == version:
        return
    if policy is None:
        raise _Refused(
            ModuleRefusal.WINDOW_UNKNOWN, "the maintenance policy could not be read; see --maintenance-policy-path"
        )
    try:
        active = policy.active(kyma.metadata.labels, now)
    except WindowUnknown as error:
        raise _Refused(ModuleRefusal.WINDOW_UNKNOWN, str(error)) from None
    if not active:
        raise _Refused(ModuleRefusal.WAITS_FOR_WINDOW, "waiting for the next maintenance window")


def _check_allowed(
    kyma: Kyma, release: ModuleReleaseMeta, template: ModuleTemplate, restricted: frozenset[str]
) -> None:
    for label, word in ((Label.INTERNAL, "internal"), (Label.BETA, "beta")):
        if is_true(template.metadata.labels, label) and not is_true(kyma.metadata.labels, label):
            raise _Refused(ModuleRefusal.NOT_ALLOWED, f"module template not allowed: {word} module")
    if template.spec.mandatory:
        raise _Refused(
            ModuleRefusal.MANDATORY,
            f"no templates were found: {release.metadata.name} is mandatory; unlist it",
        )
    if not is_offered(release, kyma.metadata.labels, restricted):
        raise _Refused(ModuleRefusal.NOT_ALLOWED, "module template not allowed: restricted module")


def is_offered(release: ModuleReleaseMeta, labels: Mapping[str, str], restricted: frozenset[str]) -> bool:
    """Reports whether a Kyma with these labels may use a module that may be restricted.

    A module is restricted by the operator's list, and then for the Kymas that its selector matches; a selector alone
    restricts it for all.
    """
    selector = release.spec.kyma_selector
    if release.metadata.name not in restricted:
        return not selector
    found = LabelSelector.from_object(selector)
    return bool(found) and found is not None and found.matches(labels)


def _check_upgrade(template: ModuleTemplate, channel: str, status: ModuleStatus | None) -> None:
    if status is None or status.template is None:
        return
    prefix = "module template update not allowed: ignore channel skew"
    try:
        wanted, current = Version(template.spec.version), Version(status.version)
    except VersionError:
        message = f"{prefix}: {template.spec.version!r} and {status.version!r} cannot be compared"
        raise _Refused(ModuleRefusal.DOWNGRADE, message) from None
    if (wanted.major, wanted.minor, wanted.patch) < (current.major, current.minor, current.patch):
        raise _Refused(
            ModuleRefusal.DOWNGRADE,
            f"{prefix}: version {template.spec.version} of channel {channel} is below the installed {status.version}",
        )


def _check_dependencies(
    template: ModuleTemplate, installed: Mapping[str, ModuleStatus], status: ModuleStatus | None
) -> None:
    try:
        needs = dependencies_of(template)
    except DependencyError as error:
        raise _Refused(ModuleRefusal.INVALID, str(error)) from None
    if status is not None and status.version == template.spec.version:
        # An installed version stays: its own state reports what a dependency that went away breaks.
        return
    if found := missing(needs, installed):
        raise _Refused(ModuleRefusal.WAITS_FOR_MODULES, f"waiting for modules: {'; '.join(found)}")
