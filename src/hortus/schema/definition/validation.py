"""The frame of a CustomResourceDefinition: names, versions, columns, subresources, conversion.

Paths are kube-apiserver's: a problem that all versions share (schema, subresources, columns, selectable fields) is
reported once, at the top level of the spec, under the names of its internal form.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from hortus.schema import fieldpath, names
from hortus.schema.definition.defaults import check_defaults
from hortus.schema.definition.keywords import check_keywords, check_rules
from hortus.schema.definition.structure import check_structural
from hortus.schema.definition.types import check_types
from hortus.schema.nodes import SchemaError, SchemaNode, compile_node
from hortus.schema.problems import FieldError, duplicate, forbidden, invalid, not_supported, required, too_many

Object = dict[str, Any]
Definition = Mapping[str, Any]

MAX_SELECTABLE_FIELDS = 8
_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_ROOT_KEYWORDS = {
    "description": "Description",
    "type": "Type",
    "format": "Format",
    "title": "Title",
    "maximum": "Maximum",
    "exclusiveMaximum": "ExclusiveMaximum",
    "minimum": "Minimum",
    "exclusiveMinimum": "ExclusiveMinimum",
    "maxLength": "MaxLength",
    "minLength": "MinLength",
    "pattern": "Pattern",
    "maxItems": "MaxItems",
    "minItems": "MinItems",
    "uniqueItems": "UniqueItems",
    "multipleOf": "MultipleOf",
    "required": "Required",
    "items": "Items",
    "properties": "Properties",
    "externalDocs": "ExternalDocs",
    "example": "Example",
    "x-kubernetes-preserve-unknown-fields": "XPreserveUnknownFields",
    "x-kubernetes-validations": "XValidations",
}
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
    yield from _choice(spec.get("scope") or "", ("Cluster", "Namespaced"), "spec.scope")
    versions: list[Definition] = list(spec.get("versions") or [])
    if not versions:
        yield invalid("spec.versions", versions, "must have exactly one version marked as storage version")
    else:
        yield from _versions(versions)
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


def _choice(value: str, allowed: tuple[str, ...], path: str) -> Iterator[FieldError]:
    if not value:
        yield required(path)
    elif value not in allowed:
        yield not_supported(path, value, allowed)


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


def _versions(versions: list[Definition]) -> Iterator[FieldError]:
    for number, version in enumerate(versions):
        path = f"spec.versions[{number}]"
        if complaint := names.dns1035_label(version.get("name") or ""):
            yield invalid(f"{path}.name", version.get("name") or "", complaint)
            if number == 0:
                yield invalid("spec.version", version.get("name") or "", complaint)
        if (version.get("schema") or {}).get("openAPIV3Schema") is None:
            yield required(f"{path}.schema.openAPIV3Schema")
        yield from _deprecation(version, path)
    yield from _parts(versions, "schema", "validation", _schema)
    yield from _parts(versions, "subresources", "subresources", _subresources)
    yield from _parts(versions, "additionalPrinterColumns", "additionalPrinterColumns", _columns)
    yield from _parts(versions, "selectableFields", "selectableFields", _selectable)
    spelled = [version.get("name") for version in versions]
    if len(set(spelled)) != len(spelled):
        yield invalid("spec.versions", versions, "must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        yield invalid("spec.versions", versions, "must have exactly one version marked as storage version")


_Check = Callable[[Any, Definition, str], Iterator[FieldError]]


def _parts(versions: list[Definition], part: str, shared: str, check: _Check) -> Iterator[FieldError]:
    """Checks one part of every version, or once when all versions have the same."""
    first = versions[0].get(part)
    if all(version.get(part) == first for version in versions):
        if first:
            yield from check(first, versions[0], f"spec.{shared}")
        return
    for number, version in enumerate(versions):
        if version.get(part):
            yield from check(version[part], version, f"spec.versions[{number}].{part}")


def _deprecation(version: Definition, path: str) -> Iterator[FieldError]:
    text = version.get("deprecationWarning")
    if text is None:
        return
    where = f"{path}.deprecationWarning"
    if not version.get("deprecated"):
        yield invalid(where, text, "can only be set for deprecated versions")
        return
    if len(text.encode()) > 256:
        yield invalid(where, text, "must be <= 256 characters long")
    if not text:
        yield invalid(where, text, "must not be an empty string")
    odd = next((place for place, char in enumerate(text) if not char.isprintable()), None)
    if odd is not None:
        index = len(text[:odd].encode())
        words = f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
        yield invalid(where, text, words)


def _schema(part: Definition, version: Definition, path: str) -> Iterator[FieldError]:
    schema = part.get("openAPIV3Schema")
    where = f"{path}.openAPIV3Schema"
    if not isinstance(schema, Mapping):
        return
    if "status" in (version.get("subresources") or {}):
        yield from _root_with_status(schema, where)
    if schema.get("nullable"):
        yield forbidden(f"{where}.nullable", "nullable cannot be true at the root")
    found = check_structural(schema, where)
    deeper = check_keywords(schema, where)
    node = None if found or deeper else _node(schema, where, found)
    if node is not None:
        found += check_defaults(node, where)
    if node is not None and not found and not deeper:
        deeper = check_rules(node, where)
    yield from found
    yield from deeper


def _node(schema: Definition, path: str, found: list[FieldError]) -> SchemaNode | None:
    try:
        return compile_node(schema)
    except SchemaError as error:
        found.append(invalid(path, "", str(error)))
        return None


def _root_with_status(schema: Definition, path: str) -> Iterator[FieldError]:
    """With a status subresource the status is checked alone, so nothing at the root may tie it to the rest."""
    if schema.get("type") != "object":
        text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
        yield invalid(f"{path}.type", schema.get("type") or "", text)
    elif any(value and name not in _ROOT_KEYWORDS for name, value in schema.items()):
        allowed = " ".join(_ROOT_KEYWORDS.values())
        text = f"only [{allowed}] fields are allowed at the root of the schema if the status subresource is enabled"
        yield invalid(path, dict(schema), text)


def _subresources(part: Definition, version: Definition, path: str) -> Iterator[FieldError]:
    scale = part.get("scale")
    if scale is None:
        return
    for name, roots in (("specReplicasPath", (".spec.",)), ("statusReplicasPath", (".status.",))):
        if not scale.get(name):
            yield required(f"{path}.scale.{name}")
        else:
            yield from _simple_path(scale[name], f"{path}.scale.{name}", roots)
    if scale.get("labelSelectorPath"):
        yield from _simple_path(scale["labelSelectorPath"], f"{path}.scale.labelSelectorPath", (".spec.", ".status."))


def _simple_path(text: str, path: str, roots: tuple[str, ...] = ()) -> Iterator[FieldError]:
    if not text.startswith("."):
        yield invalid(path, text, "must be a simple json path starting with .")
    elif roots and not text.startswith(roots):
        under = "either .spec or .status" if len(roots) > 1 else roots[0].rstrip(".")
        yield invalid(path, text, f"should be a json path under {under}")


def _columns(part: list[Definition], version: Definition, path: str) -> Iterator[FieldError]:
    for number, column in enumerate(part):
        where = f"{path}[{number}]"
        kind, style, place = column.get("type") or "", column.get("format") or "", column.get("jsonPath") or ""
        if not column.get("name"):
            yield required(f"{where}.name")
        if kind not in _COLUMN_TYPES:
            text = f"must be one of {','.join(_COLUMN_TYPES)}"
            yield invalid(f"{where}.type", kind, text) if kind else required(f"{where}.type", text)
        if style and style not in _COLUMN_FORMATS:
            yield invalid(f"{where}.format", style, f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not place:
            yield required(f"{where}.JSONPath")
        else:
            yield from _simple_path(place, f"{where}.JSONPath")


def _selectable(part: list[Definition], version: Definition, path: str) -> Iterator[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    ignored: list[FieldError] = []
    node = _node(schema, path, ignored) if isinstance(schema, Mapping) else None
    if node is None:
        return
    seen: set[str] = set()
    for number, field in enumerate(part):
        yield from _selectable_field(field.get("jsonPath") or "", node, f"{path}[{number}].jsonPath", seen)
    if len(seen) > MAX_SELECTABLE_FIELDS:
        yield too_many(path, len(seen), MAX_SELECTABLE_FIELDS)


def _selectable_field(text: str, node: SchemaNode, path: str, seen: set[str]) -> Iterator[FieldError]:
    if not text:
        yield required(path)
        return
    found = None if "[" in text else fieldpath.walk(text, node)
    if found is None:
        why = "array notation is not allowed" if "[" in text else "does not refer to a valid field"
        yield invalid(path, text, f"is an invalid path: {why}")
        return
    shown, target = found
    if shown.split(".")[0] == "metadata":
        yield invalid(path, text, "must not point to fields in metadata")
    if target.names not in (("string",), ("boolean",), ("integer",)):
        yield invalid(
            path,
            text,
            "must point to a field of type string, boolean or integer."
            " Enum string fields and strings with formats are allowed.",
        )
    if shown in seen:
        yield duplicate(path, text)
    seen.add(shown)


def _conversion(conversion: Definition) -> Iterator[FieldError]:
    if not conversion:
        return
    path = "spec.conversion"
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook")
    yield from _choice(strategy, ("None", "Webhook"), f"{path}.strategy")
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
