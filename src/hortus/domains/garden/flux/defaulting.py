"""The two passes that fill in a FluxConfig, in the order of the Go extension. Pure; nothing that is given is changed.

The first sees the whole configuration and passes on what its owner wrote from one part to another. The second fills
each part with constants. So a name that was written in the source reaches the Kustomization, and a default does not.

A part of another shape than an object is left alone, since validation reports it; so is a template of a source that is
no GitRepository and no OCIRepository of version v1.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hortus.domains.garden.flux.names import (
    DEFAULT_INTERVAL,
    DEFAULT_NAME,
    DEFAULT_REGISTRY,
    DEFAULT_VERSION,
    GIT,
    KUSTOMIZATION,
    KUSTOMIZATION_VERSION,
    SOURCE_VERSION,
    SOURCES,
)
from hortus.kube import durations
from hortus.kube.objects import Object

_REFERENCE: Final = ("kind", "name", "namespace")


def defaulted(config: Object) -> Object:
    """The configuration after both passes."""
    return second_pass(first_pass(config))


def first_pass(config: Object) -> Object:
    """Fill the parts of a configuration from each other."""
    found = {**config, "flux": _object(config, "flux")}
    source, kustomization = _template(found, "source"), _template(found, "kustomization")
    is_whole = source is not None and kustomization is not None
    if is_whole and is_source(source):
        written = {**_object(source, "metadata"), "kind": _value(source, "kind")}
        kustomization = _with_reference(kustomization, {name: _value(written, name) for name in _REFERENCE})
    flux = found["flux"]
    namespace = _value(flux, "namespace") if isinstance(flux, Mapping) else None
    if namespace and isinstance(namespace, str):
        if is_source(source):
            source = _with_metadata(source, {"namespace": namespace})
        kustomization = _with_metadata(kustomization, {"namespace": namespace})
        kustomization = _with_reference(kustomization, {"namespace": namespace})
    return _with_templates(found, source, kustomization)


def second_pass(config: Object) -> Object:
    """Fill what is still empty with constants."""
    constants = {"version": DEFAULT_VERSION, "registry": DEFAULT_REGISTRY, "namespace": DEFAULT_NAME}
    found = {**config, "flux": _filled(_object(config, "flux"), constants)}
    source, kustomization = _template(found, "source"), _template(found, "kustomization")
    place = {"name": DEFAULT_NAME, "namespace": DEFAULT_NAME}
    if is_source(source):
        source = _with_interval(_with_metadata(source, place))
        spec = _object(source, "spec")
        if _value(_object(found, "source"), "secretResourceName") and _value(spec, "secretRef") is None:
            source = {**source, "spec": {**spec, "secretRef": {"name": DEFAULT_NAME}}}
    if kustomization is not None:
        kustomization = {"apiVersion": KUSTOMIZATION_VERSION, "kind": KUSTOMIZATION, **kustomization}
        kustomization = _with_interval(_with_metadata(kustomization, place))
        kustomization = _with_reference(kustomization, {"kind": GIT, **place})
        if isinstance(spec := kustomization["spec"], Mapping):
            # Flux's CRD requires it; the Go type writes it where nobody gave it.
            kustomization = {**kustomization, "spec": {"prune": False, **spec}}
    return _with_templates(found, source, kustomization)


def is_source(template: Object | None) -> bool:
    """Reports whether a template can be read as a source."""
    if template is None or _value(template, "apiVersion") != SOURCE_VERSION:
        return False
    kind = _value(template, "kind")
    if not isinstance(kind, str) or kind not in SOURCES:
        return False
    return all(isinstance(_object(template, part), Mapping) for part in ("metadata", "spec"))


def is_zero(interval: object) -> bool:
    """Reports whether an interval counts as absent."""
    if not interval:
        return True
    try:
        return isinstance(interval, str) and durations.parse(interval) == 0
    except durations.DurationError:
        return False


def _value(parent: Mapping[str, Any], name: str) -> Any:
    return parent.get(name)


def _object(parent: Mapping[str, Any], name: str) -> Any:
    """The object in a field, empty where there is none; a value of another shape as it is."""
    found = parent.get(name)
    return {} if found is None else found


def _template(config: Object, part: str) -> Any:
    """The template of a part; None where there is none that is an object."""
    holder = _value(config, part)
    found = _value(holder, "template") if isinstance(holder, Mapping) else None
    return found if isinstance(found, Mapping) else None


def _with_templates(config: Object, source: Object | None, kustomization: Object | None) -> Object:
    changed = dict(config)
    for part, template in (("source", source), ("kustomization", kustomization)):
        if template is not None:
            changed[part] = {**config[part], "template": template}
    return changed


def _filled(target: Any, values: Mapping[str, Any]) -> Any:
    """`target` with values in its empty fields."""
    if not isinstance(target, Mapping):
        return target
    return {**target, **{name: value for name, value in values.items() if value and not target.get(name)}}


def _with_metadata(template: Any, values: Mapping[str, Any]) -> Any:
    if template is None:
        return None
    return {**template, "metadata": _filled(_object(template, "metadata"), values)}


def _with_reference(template: Any, values: Mapping[str, Any]) -> Any:
    if template is None:
        return None
    spec = _object(template, "spec")
    if not isinstance(spec, Mapping):
        return template
    return {**template, "spec": {**spec, "sourceRef": _filled(_object(spec, "sourceRef"), values)}}


def _with_interval(template: Object) -> Object:
    spec = _object(template, "spec")
    if not isinstance(spec, Mapping) or not is_zero(_value(spec, "interval")):
        return template
    return {**template, "spec": {**spec, "interval": DEFAULT_INTERVAL}}
