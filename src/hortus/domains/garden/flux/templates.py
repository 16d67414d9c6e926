"""The templates of a source and a Kustomization, judged after they were filled in. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Protocol

import msgspec

from hortus.domains.garden.flux.names import (
    GIT,
    KUSTOMIZATION,
    KUSTOMIZATION_VERSION,
    OCI,
    SOURCE_VERSION,
    SOURCES,
)
from hortus.kube import durations
from hortus.kube.naming import dns_label, dns_subdomain
from hortus.kube.objects import Object
from hortus.schema import FieldError
from hortus.schema.problems import invalid, not_supported, required, type_invalid

_GIT_REFS: Final = ("branch", "tag", "semver", "name", "commit")
_OCI_REFS: Final = ("tag", "semver", "digest")


class _Holder(Protocol):
    @property
    def template(self) -> Any: ...


class _SourceHolder(_Holder, Protocol):
    @property
    def secret_resource_name(self) -> Any: ...


class _Metadata(msgspec.Struct):
    name: Any = None
    namespace: Any = None


class _Reference(msgspec.Struct):
    kind: Any = None
    name: Any = None
    namespace: Any = None


class _Spec(msgspec.Struct, rename="camel"):
    """The fields of all three kinds that are judged."""

    url: Any = None
    ref: Any = None
    interval: Any = None
    secret_ref: Any = None
    path: Any = None
    source_ref: Any = None


class _Template(msgspec.Struct, rename="camel"):
    """An object of any shape."""

    api_version: Any = None
    kind: Any = None
    metadata: Any = None
    spec: Any = None


_TEMPLATE_FIELDS: Final = frozenset({"apiVersion", "kind", "metadata", "spec", "status"})
"""Fields of a template that need no warning. A status is for controllers to write, and it is not applied."""


class TemplateReader:
    """Judges templates; problems go to the lists that it is given."""

    def __init__(self, path: str, errors: list[FieldError], warnings: list[str]) -> None:
        """`path` is that of the configuration."""
        self._path = path
        self.errors = errors
        self.warnings = warnings

    def source(self, holder: _SourceHolder) -> Object | None:
        """The source of a part; None where it cannot be read."""
        path = f"{self._path}.source.template"
        template = self._template(holder, path, SOURCE_VERSION, tuple(SOURCES))
        if template is None:
            return None
        spec = self._spec(template, path)
        if spec is None:
            return None
        if template.kind == GIT:
            self._text(spec.url, f"{path}.spec.url")
            self._ref(spec.ref, f"{path}.spec.ref", _GIT_REFS)
        else:
            if self._text(spec.url, f"{path}.spec.url") and not spec.url.startswith("oci://"):
                self.errors.append(invalid(f"{path}.spec.url", spec.url, f"of an {OCI} must begin with oci://"))
            self._ref(spec.ref, f"{path}.spec.ref", _OCI_REFS)
        return _made(template)

    def kustomization(self, holder: _Holder, source: Object | None) -> Object | None:
        """The Kustomization of a part; None where it cannot be read."""
        path = f"{self._path}.kustomization.template"
        template = self._template(holder, path, KUSTOMIZATION_VERSION, (KUSTOMIZATION,))
        if template is None:
            return None
        spec = self._spec(template, path)
        if spec is None:
            return None
        self._text(spec.path, f"{path}.spec.path")
        reference, place = spec.source_ref, f"{path}.spec.sourceRef"
        if not isinstance(reference, Mapping):
            self.errors.append(type_invalid(place, reference, "must be an object"))
        elif source is not None:
            self._follows(msgspec.convert(reference, _Reference), msgspec.convert(source, _Template), place)
        return _made(template)

    def secret(self, holder: _SourceHolder, source: Object | None) -> tuple[str, str] | None:
        """Namespace and name of the Secret of a source; None where it has none."""
        path, named = f"{self._path}.source", holder.secret_resource_name
        spec = msgspec.convert(msgspec.convert(source, _Template).spec, _Spec) if source is not None else _Spec()
        if spec.secret_ref is None:
            return None
        name = msgspec.convert(spec.secret_ref, _Metadata).name if isinstance(spec.secret_ref, Mapping) else None
        if not isinstance(name, str) or not name:
            self.errors.append(required(f"{path}.template.spec.secretRef.name", "name the Secret in the Shoot"))
            return None
        if not named:
            detail = "template.spec.secretRef is given: name an entry of spec.resources that refers to its Secret"
            self.errors.append(required(f"{path}.secretResourceName", detail))
            return None
        assert source is not None, "its spec was read"
        metadata = msgspec.convert(msgspec.convert(source, _Template).metadata, _Metadata)
        return str(metadata.namespace), name

    def _template(self, holder: _Holder, path: str, version: str, kinds: tuple[str, ...]) -> _Template | None:
        if holder.template is None:
            self.errors.append(required(path, f"give an object of kind {' or '.join(kinds)}"))
            return None
        if not isinstance(holder.template, Mapping):
            self.errors.append(type_invalid(path, holder.template, "must be an object"))
            return None
        self.warnings += [f"{path}.{name}: unknown field" for name in holder.template if name not in _TEMPLATE_FIELDS]
        found = msgspec.convert(holder.template, _Template)
        before = len(self.errors)
        if found.api_version != version:
            self._choice(f"{path}.apiVersion", found.api_version, (version,))
        if found.kind not in kinds:
            self._choice(f"{path}.kind", found.kind, kinds)
        if len(self.errors) > before or not self._metadata(found.metadata, f"{path}.metadata"):
            return None
        return found

    def _choice(self, path: str, value: Any, choices: tuple[str, ...]) -> None:
        missing = value in (None, "")
        self.errors.append(required(path, " or ".join(choices)) if missing else not_supported(path, value, choices))

    def _metadata(self, value: Any, path: str) -> bool:
        if not isinstance(value, Mapping):
            self.errors.append(type_invalid(path, value, "must be an object"))
            return False
        found, before = msgspec.convert(value, _Metadata), len(self.errors)
        for name, text, check in (("name", found.name, dns_subdomain), ("namespace", found.namespace, dns_label)):
            if not isinstance(text, str):
                self.errors.append(type_invalid(f"{path}.{name}", text, "must be text"))
            else:
                self.errors += [invalid(f"{path}.{name}", text, problem) for problem in check(text)]
        return len(self.errors) == before

    def _spec(self, template: _Template, path: str) -> _Spec | None:
        if not isinstance(template.spec, Mapping):
            self.errors.append(type_invalid(f"{path}.spec", template.spec, "must be an object"))
            return None
        spec, place = msgspec.convert(template.spec, _Spec), f"{path}.spec.interval"
        try:
            if durations.parse(str(spec.interval)) < 0:
                self.errors.append(invalid(place, spec.interval, "must not be negative"))
        except durations.DurationError as error:
            self.errors.append(invalid(place, spec.interval, str(error)))
        return spec

    def _text(self, value: Any, path: str) -> bool:
        if value in (None, ""):
            self.errors.append(required(path))
            return False
        if not isinstance(value, str):
            self.errors.append(type_invalid(path, value, "must be text"))
            return False
        return True

    def _ref(self, value: Any, path: str, fields: tuple[str, ...]) -> None:
        if value is not None and not isinstance(value, Mapping):
            self.errors.append(type_invalid(path, value, "must be an object"))
        elif not any((value or {}).get(name) for name in fields):
            self.errors.append(required(path, f"give one of {', '.join(fields)}"))

    def _follows(self, reference: _Reference, source: _Template, path: str) -> None:
        """Warn of a Kustomization that follows another source than the one next to it."""
        metadata = msgspec.convert(source.metadata, _Metadata)
        wanted = (source.kind, metadata.name, metadata.namespace)
        if (reference.kind, reference.name, reference.namespace) != wanted:
            given = f"{reference.kind} {reference.namespace}/{reference.name}"
            own = f"{source.kind} {metadata.namespace}/{metadata.name}"
            self.warnings.append(f"{path}: refers to {given}, and not to the source of this configuration, {own}")


def _made(template: _Template) -> Object:
    """The object that is applied; a status in a template does not count."""
    return {
        "apiVersion": template.api_version,
        "kind": template.kind,
        "metadata": dict(template.metadata),
        "spec": dict(template.spec),
    }
