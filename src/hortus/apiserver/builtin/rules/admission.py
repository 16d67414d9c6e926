"""Webhook configurations and admission policies, CustomResourceDefinitions and APIServices."""

from __future__ import annotations

from typing import Any

from hortus.apiserver.admission.expressions import problem_of
from hortus.apiserver.builtin.problems import duplicate, every, invalid, required, unsupported
from hortus.apiserver.builtin.rules.selectors import label_selector
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.naming import dns_1035_label, dns_subdomain
from hortus.kube.objects import Object

_REVIEW_VERSIONS = ("v1", "v1beta1")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_LONGEST_TIMEOUT = 30


class WebhookStrategy(BuiltinStrategy):
    """MutatingWebhookConfiguration and ValidatingWebhookConfiguration."""

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found: list[FieldProblem] = []
        seen: set[str] = set()
        for place, webhook in enumerate(obj.get("webhooks") or []):
            path, name = f"webhooks[{place}]", webhook.get("name", "")
            found += _webhook(webhook, path)
            if name in seen:
                found.append(duplicate(f"{path}.name", name))
            seen.add(name)
        return found


def _webhook(webhook: dict[str, Any], path: str) -> list[FieldProblem]:
    name, versions = webhook.get("name", ""), webhook.get("admissionReviewVersions") or []
    found = [required(f"{path}.name")] if not name else every(f"{path}.name", name, dns_subdomain(name))
    if name and name.count(".") < 2:
        sentence = "should be a domain with at least three segments separated by dots"
        found.append(invalid(f"{path}.name", name, sentence))
    if versions and not set(versions) & set(_REVIEW_VERSIONS):
        sentence = "must include at least one of v1, v1beta1"
        found.append(invalid(f"{path}.admissionReviewVersions", versions, sentence))
    effects = webhook.get("sideEffects")
    if effects is not None and effects not in _SIDE_EFFECTS:
        found.append(unsupported(f"{path}.sideEffects", effects, _SIDE_EFFECTS))
    seconds = webhook.get("timeoutSeconds", 1)
    if not 1 <= seconds <= _LONGEST_TIMEOUT:
        found.append(invalid(f"{path}.timeoutSeconds", seconds, "the timeout value must be between 1 and 30 seconds"))
    for key in ("namespaceSelector", "objectSelector"):
        found += label_selector(webhook.get(key), f"{path}.{key}")
    conditions = [
        (f"{path}.matchConditions[{place}].expression", each.get("expression") or "", "bool")
        for place, each in enumerate(webhook.get("matchConditions") or [])
    ]
    found += _uncompiled(conditions, policy=False)
    return found + _client_config(webhook.get("clientConfig") or {}, f"{path}.clientConfig")


def _client_config(config: dict[str, Any], path: str) -> list[FieldProblem]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    if service is not None:
        return [required(f"{path}.service.{key}") for key in ("name", "namespace") if not service.get(key)]
    if not str(url).startswith("https://"):
        return [invalid(f"{path}.url", url, "'https' is the only allowed URL scheme")]
    return []


class PolicyStrategy(BuiltinStrategy):
    """ValidatingAdmissionPolicy."""

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        found: list[FieldProblem] = []
        if not spec.get("validations") and not spec.get("auditAnnotations"):
            found.append(required("spec.validations", "validations or auditAnnotations must be specified"))
        if "matchConstraints" not in spec:
            found.append(required("spec.matchConstraints"))
        elif not spec["matchConstraints"].get("resourceRules"):
            found.append(required("spec.matchConstraints.resourceRules"))
        for place, validation in enumerate(spec.get("validations") or []):
            if not (validation.get("expression") or "").strip():
                found.append(required(f"spec.validations[{place}].expression", "expression is not specified"))
        return found + _expressions(spec)


def _expressions(spec: dict[str, Any]) -> list[FieldProblem]:
    """What cannot be compiled of a policy."""
    texts: list[tuple[str, str, str]] = []
    for key, field, returns in (
        ("variables", "expression", "any"),
        ("matchConditions", "expression", "bool"),
        ("validations", "expression", "bool"),
        ("validations", "messageExpression", "string"),
        ("auditAnnotations", "valueExpression", "any"),
    ):
        for place, each in enumerate(spec.get(key) or []):
            texts.append((f"spec.{key}[{place}].{field}", each.get(field) or "", returns))
    return _uncompiled(texts, policy=True)


def _uncompiled(texts: list[tuple[str, str, str]], *, policy: bool) -> list[FieldProblem]:
    found = []
    for path, text, returns in texts:
        problem = problem_of(text, policy=policy, returns=returns) if text.strip() else ""
        if problem:
            found.append(invalid(path, text, problem))
    return found


class PolicyBindingStrategy(BuiltinStrategy):
    """ValidatingAdmissionPolicyBinding."""

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        found = [] if spec.get("policyName") else [required("spec.policyName")]
        if not spec.get("validationActions"):
            found.append(required("spec.validationActions"))
        return found


class CustomResourceStrategy(BuiltinStrategy):
    """CustomResourceDefinition: the names it implies. Whoever serves the kind judges its schema."""

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        names = obj["spec"]["names"]
        kind = names.get("kind", "")
        if not names.get("singular"):
            names["singular"] = kind.lower()
        if not names.get("listKind") and kind:
            names["listKind"] = f"{kind}List"
        if old is None:
            stored = [v["name"] for v in obj["spec"].get("versions") or [] if v.get("storage") and v.get("name")]
            obj["status"] = {
                "conditions": [],
                "acceptedNames": {"plural": "", "kind": ""},
                "storedVersions": stored or None,
            }

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        group, plural = spec.get("group", ""), spec["names"].get("plural", "")
        found: list[FieldProblem] = []
        if obj["metadata"].get("name") != f"{plural}.{group}":
            sentence = 'must be spec.names.plural+"."+spec.group'
            found.append(invalid("metadata.name", obj["metadata"].get("name", ""), sentence))
        if not group:
            found.append(required("spec.group"))
        elif "." not in group:
            found.append(invalid("spec.group", group, "should be a domain with at least one dot"))
        found += _names(spec["names"])
        versions = spec.get("versions") or []
        if sum(1 for version in versions if version.get("storage")) != 1:
            sentence = "must have exactly one version marked as storage version"
            found.append(invalid("spec.versions", [version.get("name") for version in versions], sentence))
        for place, version in enumerate(versions):
            name = version.get("name", "")
            found += every(f"spec.versions[{place}].name", name, dns_1035_label(name))
            if not (version.get("schema") or {}).get("openAPIV3Schema"):
                where = f"spec.versions[{place}].schema.openAPIV3Schema"
                found.append(required(where, "schemas are required"))
        return found


def _names(names: dict[str, Any]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    for key in ("plural", "singular", "kind", "listKind"):
        name = names.get(key, "")
        if not name:
            found.append(required(f"spec.names.{key}"))
        else:
            found += every(f"spec.names.{key}", name, dns_1035_label(name.lower()))
    for place, name in enumerate(names.get("shortNames") or []):
        found += every(f"spec.names.shortNames[{place}]", name, dns_1035_label(name))
    if names.get("kind") and names.get("kind") == names.get("listKind"):
        found.append(invalid("spec.names.listKind", names["listKind"], "kind and listKind may not be the same"))
    return found


class ApiServiceStrategy(BuiltinStrategy):
    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        expected = f"{spec.get('version', '')}.{spec.get('group', '')}"
        if name != expected:
            return [invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{expected}"')]
        return []


STRATEGIES: dict[str, type[BuiltinStrategy]] = {
    "admission.MutatingWebhookConfiguration": WebhookStrategy,
    "admission.ValidatingWebhookConfiguration": WebhookStrategy,
    "admission.ValidatingAdmissionPolicy": PolicyStrategy,
    "admission.ValidatingAdmissionPolicyBinding": PolicyBindingStrategy,
    "apiextensions.CustomResourceDefinition": CustomResourceStrategy,
    "apiregistration.APIService": ApiServiceStrategy,
}
