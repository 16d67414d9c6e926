"""The frame of a CustomResourceDefinition: names, conversion, approval. `versions` checks the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hortus.schema import names
from hortus.schema.definition.types import check_types
from hortus.schema.definition.versions import check_choice, check_versions
from hortus.schema.problems import FieldError, forbidden, invalid, required

Object = dict[str, Any]
Definition = Mapping[str, Any]

_PROTECTED = ("k8s.io", "kubernetes.io")
_APPROVED = "api-approved.kubernetes.io"
_APPROVAL_RULE = f'protected groups must have approval annotation "{_APPROVED}"'
_APPROVAL_PAGE = "see https://github.com/kubernetes/enhancements/pull/1111"


def with_crd_defaults(crd: Object) -> None:
    """Fills in the defaults of kube-apiserver in place: names, conversion, the port of a conversion webhook.

    A definition with wrong types is left for `validate_crd` to refuse.
    """
    if check_types(crd):
        return
    spec = crd["spec"] = crd.get("spec") or {}
    kinds = spec["names"] = spec.get("names") or {}
    if not kinds.get("singular") and kinds.get("kind"):
        kinds["singular"] = kinds["kind"].lower()
    if not kinds.get("listKind") and kinds.get("kind"):
        kinds["listKind"] = f"{kinds['kind']}List"
    conversion = spec["conversion"] = spec.get("conversion") or {"strategy": "None"}
    service = ((conversion.get("webhook") or {}).get("clientConfig") or {}).get("service")
    if service is not None:
        service.setdefault("port", 443)


def validate_crd(crd: Object, old: Object | None = None) -> list[FieldError]:
    """Every problem of a CustomResourceDefinition with its defaults filled in; `old` is what it replaces."""
    if wrong := check_types(crd):
        return wrong
    spec: Definition = crd.get("spec") or {}
    found = [*_name(crd, spec), *_spec(spec), *_approval(crd, old)]
    if spec.get("preserveUnknownFields"):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        found.append(invalid("spec.preserveUnknownFields", True, text))
    if old is not None:
        found += _unchanged(crd, old)
    return found


def _name(crd: Object, spec: Definition) -> Iterator[FieldError]:
    name = (crd.get("metadata") or {}).get("name") or ""
    plural = (spec.get("names") or {}).get("plural") or ""
    if complaint := names.dns1123_subdomain(name):
        yield invalid("metadata.name", name, complaint)
    if name != f"{plural}.{spec.get('group') or ''}":
        yield invalid("metadata.name", name, 'must be spec.names.plural+"."+spec.group')


def _spec(spec: Definition) -> Iterator[FieldError]:
    yield from _group(spec.get("group") or "")
    yield from check_choice(spec.get("scope") or "", ("Cluster", "Namespaced"), "spec.scope")
    versions: list[Definition] = list(spec.get("versions") or [])
    if not versions:
        yield invalid("spec.versions", versions, "must have exactly one version marked as storage version")
    else:
        yield from check_versions(versions)
    kinds = spec.get("names") or {}
    for part in ("plural", "singular", "kind", "listKind"):
        if not kinds.get(part):
            yield required(f"spec.names.{part}")
    yield from check_names(kinds, "spec.names")
    yield from _conversion(spec.get("conversion") or {})


def _group(group: str) -> Iterator[FieldError]:
    if not group:
        yield required("spec.group")
    elif complaint := names.dns1123_subdomain(group):
        yield invalid("spec.group", group, complaint)
    elif "." not in group:
        yield invalid("spec.group", group, "should be a domain with at least one dot")


def check_names(kinds: Definition, path: str) -> Iterator[FieldError]:
    """The grammar of the names of a kind, those of `status.acceptedNames` included."""
    for part in ("plural", "singular"):
        text = kinds.get(part) or ""
        if text and (complaint := names.dns1035_label(text)):
            yield invalid(f"{path}.{part}", text, complaint)
    for part in ("kind", "listKind"):
        text = kinds.get(part) or ""
        if text and (complaint := names.dns1035_label(text.lower())):
            yield invalid(f"{path}.{part}", text, f"may have mixed case, but should otherwise match: {complaint}")
    if kinds.get("kind") and kinds.get("kind") == kinds.get("listKind"):
        yield invalid(f"{path}.listKind", kinds["listKind"], "kind and listKind may not be the same")
    for part in ("shortNames", "categories"):
        for number, text in enumerate(kinds.get(part) or []):
            if complaint := names.dns1035_label(text):
                yield invalid(f"{path}.{part}[{number}]", text, complaint)


def _conversion(conversion: Definition) -> Iterator[FieldError]:
    if not conversion:
        return
    path = "spec.conversion"
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook")
    yield from check_choice(strategy, ("None", "Webhook"), f"{path}.strategy")
    config = (webhook or {}).get("clientConfig")
    accepted = list((webhook or {}).get("conversionReviewVersions") or [])
    if strategy != "Webhook":
        text = "should not be set when strategy is not set to Webhook"
        if config is not None:
            yield forbidden(f"{path}.webhookClientConfig", text)
        if accepted:
            yield forbidden(f"{path}.conversionReviewVersions", text)
        return
    if config is None:
        yield required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
    else:
        yield from _client_config(config, f"{path}.webhookClientConfig")
    yield from _review_versions(accepted, f"{path}.conversionReviewVersions")


def _client_config(config: Definition, path: str) -> Iterator[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
    elif url is not None:
        if not url.startswith("https://"):
            text = "'https' is the only allowed URL scheme; desired format: https://host[/path]"
            yield invalid(f"{path}.url", url.partition("://")[0] if "://" in url else url, text)
    elif service is not None:
        for part in ("name", "namespace"):
            if not service.get(part):
                yield required(f"{path}.service.{part}")


def _review_versions(accepted: list[str], path: str) -> Iterator[FieldError]:
    if not accepted:
        yield required(path)
        return
    for number, version in enumerate(accepted):
        if version in accepted[:number]:
            yield invalid(f"{path}[{number}]", version, "duplicate version")
        elif complaint := names.dns1035_label(version):
            yield invalid(f"{path}[{number}]", version, complaint)
    if not {"v1", "v1beta1"} & set(accepted):
        yield invalid(path, accepted, "must include at least one of v1, v1beta1")


def _approval(crd: Object, old: Object | None) -> Iterator[FieldError]:
    """Groups of the Kubernetes project are kept for APIs that it has approved."""
    group = (crd.get("spec") or {}).get("group") or ""
    if group not in _PROTECTED and not group.endswith(tuple(f".{suffix}" for suffix in _PROTECTED)):
        return
    value = _approval_of(crd)
    if old is not None and _approval_of(old) == value:
        return
    path = f"metadata.annotations[{_APPROVED}]"
    if not value:
        yield required(path, f"{_APPROVAL_RULE}, {_APPROVAL_PAGE}")
    elif not value.startswith(("unapproved", "https://")):
        text = f'{_APPROVAL_RULE} with either a URL or a reason starting with "unapproved", {_APPROVAL_PAGE}'
        yield invalid(path, value, text)


def _approval_of(crd: Object) -> str:
    return str(((crd.get("metadata") or {}).get("annotations") or {}).get(_APPROVED) or "")


def _unchanged(crd: Object, old: Object) -> Iterator[FieldError]:
    """Checks the fields that stored objects depend on; scope and kind are fixed once the kind was served."""
    new_spec, old_spec = crd.get("spec") or {}, old.get("spec") or {}
    new_names, old_names = new_spec.get("names") or {}, old_spec.get("names") or {}
    pairs = [("group", new_spec.get("group"), old_spec.get("group"))]
    pairs.append(("names.plural", new_names.get("plural"), old_names.get("plural")))
    if _established(old):
        pairs.append(("scope", new_spec.get("scope"), old_spec.get("scope")))
        pairs.append(("names.kind", new_names.get("kind"), old_names.get("kind")))
    for path, new, before in pairs:
        if new != before:
            yield invalid(f"spec.{path}", new, "field is immutable")


def _established(crd: Object) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or []
    return any(c.get("type") == "Established" and c.get("status") == "True" for c in conditions)
