"""Webhook configurations and admission policies, CustomResourceDefinitions and APIServices."""

from __future__ import annotations

import base64
import re
from typing import Any
from urllib.parse import urlsplit

from hortus.apiserver.admission.expressions import problem_of
from hortus.apiserver.builtin.names import port_number
from hortus.apiserver.builtin.problems import duplicate, every, forbidden, invalid, required, show, unsupported
from hortus.apiserver.builtin.rules.selectors import label_selector
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.registrations import LOCAL_CONDITION
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.naming import dns_1035_label, dns_subdomain, path_segment, qualified_name
from hortus.kube.objects import Object, format_time
from hortus.schema.cel.program import MAX_EXPRESSIONS

_REVIEW_VERSIONS = ("v1", "v1beta1")
_SIDE_EFFECTS = ("None", "NoneOnDryRun")
_LONGEST_TIMEOUT = 30
_REASONS = ("Forbidden", "Invalid", "RequestEntityTooLarge")
_IDENTIFIER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_URL_FORM = "desired format: https://host[/path]"


_EXPRESSIONS = frozenset({"expression", "messageExpression", "valueExpression"})


class WebhookStrategy(BuiltinStrategy):
    """MutatingWebhookConfiguration and ValidatingWebhookConfiguration."""

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        found = _too_long(obj.get("webhooks"), "webhooks")
        if found:
            return found
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
    for place, rule in enumerate(webhook.get("rules") or []):
        found += _rule(rule, f"{path}.rules[{place}]")
    if not versions:
        found.append(required(f"{path}.admissionReviewVersions", "must specify one of v1, v1beta1"))
    elif not set(versions) & set(_REVIEW_VERSIONS):
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
    found += _client_config(webhook.get("clientConfig") or {}, f"{path}.clientConfig")
    return found + _conditions(webhook.get("matchConditions") or [], f"{path}.matchConditions", policy=False)


def _rule(rule: dict[str, Any], path: str) -> list[FieldProblem]:
    """One entry of a webhook's `rules` or a policy's `resourceRules`."""
    found: list[FieldProblem] = []
    for key, words in (("operations", "operations"), ("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(key) or []
        if not values:
            found.append(required(f"{path}.{key}"))
        elif "*" in values and len(values) > 1:
            found.append(invalid(f"{path}.{key}", values, f"if '*' is present, must not specify other {words}"))
    return found + _resources(rule.get("resources") or [], f"{path}.resources")


def _resources(resources: list[str], path: str) -> list[FieldProblem]:
    """The problems of overlapping resources such as `pods`, `pods/*`, `*/scale` and `*/*`."""
    found = [] if resources else [required(path)]
    whole: set[str] = set()
    everywhere: set[str] = set()
    for place, each in enumerate(resources):
        resource, slash, subresource = each.partition("/")
        if not each:
            found.append(required(f"{path}[{place}]"))
        elif slash and each != "*/*":
            if resource in whole:
                text = f"if '{resource}/*' is present, must not specify {each}"
                found.append(invalid(f"{path}[{place}]", each, text))
            if subresource in everywhere:
                text = f"if '*/{subresource}' is present, must not specify {each}"
                found.append(invalid(f"{path}[{place}]", each, text))
            whole |= {resource} if subresource == "*" else set()
            everywhere |= {subresource} if resource == "*" else set()
    if "*/*" in resources and len(resources) > 1:
        found.append(invalid(path, resources, "if '*/*' is present, must not specify other resources"))
    if "*" in resources and any("/" not in each and each != "*" for each in resources):
        text = "if '*' is present, must not specify other resources without subresources"
        found.append(invalid(path, resources, text))
    return found


def _conditions(conditions: list[dict[str, Any]], path: str, *, policy: bool) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    seen: set[str] = set()
    for place, condition in enumerate(conditions):
        where, name, text = f"{path}[{place}]", condition.get("name") or "", condition.get("expression") or ""
        if not text.strip():
            found.append(required(f"{where}.expression"))
        found += _uncompiled([(f"{where}.expression", text, "bool")], policy=policy)
        if not name:
            found.append(required(f"{where}.name"))
        else:
            found += every(f"{where}.name", name, qualified_name(name))
        if name and name in seen:
            found.append(duplicate(f"{where}.name", name))
        seen.add(name)
    return found


def _client_config(config: dict[str, Any], path: str) -> list[FieldProblem]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        return [required(path, "exactly one of url or service is required")]
    return _service(service, f"{path}.service") if service is not None else _url(str(url), f"{path}.url")


def _service(service: dict[str, Any], path: str) -> list[FieldProblem]:
    found = [required(f"{path}.{key}") for key in ("name", "namespace") if not service.get(key)]
    if port_number(port := service.get("port", 443)):
        found.append(invalid(f"{path}.port", port, "port is not valid: must be between 1 and 65535, inclusive"))
    asked = service.get("path") or ""
    if asked in ("", "/"):
        return found
    if not asked.startswith("/"):
        found.append(invalid(f"{path}.path", asked, "must start with a '/'"))
    for place, step in enumerate(asked[1:].removesuffix("/").split("/")):
        problems = dns_subdomain(step) if step else ["may not be empty"]
        between = ":" if step else ""
        found += [invalid(f"{path}.path", asked, f"segment[{place}]{between} {problem}") for problem in problems]
    return found


def _url(url: str, path: str) -> list[FieldProblem]:
    try:
        parts = urlsplit(url)
    except ValueError as error:
        return [required(path, f"url must be a valid URL: {error}; {_URL_FORM}")]
    found = []
    if parts.scheme != "https":
        found.append(invalid(path, parts.scheme, f"'https' is the only allowed URL scheme; {_URL_FORM}"))
    if not parts.hostname:
        found.append(invalid(path, parts.netloc, f"host must be specified; {_URL_FORM}"))
    user, at, _ = parts.netloc.rpartition("@")
    if at:
        found.append(invalid(path, user, "user information is not permitted in the URL"))
    if parts.fragment:
        found.append(invalid(path, parts.fragment, "fragments are not permitted in the URL"))
    if parts.query:
        found.append(invalid(path, parts.query, "query parameters are not permitted in the URL"))
    return found


class PolicyStrategy(BuiltinStrategy):
    """ValidatingAdmissionPolicy."""

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        found = _too_long(spec, "spec")
        if found:
            return found
        if not spec.get("validations") and not spec.get("auditAnnotations"):
            sentence = "validations or auditAnnotations must contain at least one item"
            found += [required(f"spec.{key}", sentence) for key in ("validations", "auditAnnotations")]
        if "paramKind" in spec:
            found += _param_kind(spec["paramKind"])
        if "matchConstraints" not in spec:
            found.append(required("spec.matchConstraints"))
        elif not spec["matchConstraints"].get("resourceRules"):
            found.append(required("spec.matchConstraints.resourceRules"))
        else:
            for place, rule in enumerate(spec["matchConstraints"]["resourceRules"]):
                found += _rule(rule, f"spec.matchConstraints.resourceRules[{place}]")
        found += _conditions(spec.get("matchConditions") or [], "spec.matchConditions", policy=True)
        return found + _validations(spec) + _annotations(spec, obj["metadata"].get("name", "")) + _expressions(spec)


def _param_kind(param: dict[str, Any]) -> list[FieldProblem]:
    version, kind = param.get("apiVersion") or "", param.get("kind") or ""
    found = [required(f"spec.paramKind.{key}") for key, value in (("apiVersion", version), ("kind", kind)) if not value]
    if version.count("/") > 1:
        found.append(invalid("spec.paramKind.apiVersion", version, f"unexpected GroupVersion string: {version}"))
    for problem in dns_1035_label(kind.lower()) if kind else ():
        sentence = f"may have mixed case, but should otherwise match: {problem}"
        found.append(invalid("spec.paramKind.kind", kind, sentence))
    return found


def _validations(spec: dict[str, Any]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    for place, validation in enumerate(spec.get("validations") or []):
        path, reason, message = f"spec.validations[{place}]", validation.get("reason"), validation.get("message") or ""
        if not (validation.get("expression") or "").strip():
            found.append(required(f"{path}.expression", "expression is not specified"))
        if "\n" in message.strip():
            found.append(invalid(f"{path}.message", message, "must not contain line breaks"))
        if reason is not None and reason not in _REASONS:
            found.append(unsupported(f"{path}.reason", reason, _REASONS))
    for place, variable in enumerate(spec.get("variables") or []):
        name = variable.get("name") or ""
        if not name:
            found.append(required(f"spec.variables[{place}].name", "name is not specified"))
        elif not _IDENTIFIER.fullmatch(name):
            found.append(invalid(f"spec.variables[{place}].name", name, "must be a valid CEL identifier"))
    return found


def _annotations(spec: dict[str, Any], policy: str) -> list[FieldProblem]:
    """Audit annotations are keyed by policy and key."""
    found: list[FieldProblem] = []
    for place, annotation in enumerate(spec.get("auditAnnotations") or []):
        path, key = f"spec.auditAnnotations[{place}].key", f"{policy}/{annotation.get('key') or ''}"
        found += every(path, key, qualified_name(key))
    return found


def _expressions(spec: dict[str, Any]) -> list[FieldProblem]:
    """The problems of the expressions of a policy."""
    texts: list[tuple[str, str, str]] = []
    for key, field, returns in (
        ("variables", "expression", "any"),
        ("validations", "expression", "bool"),
        ("validations", "messageExpression", "string"),
        ("auditAnnotations", "valueExpression", "string or null"),
    ):
        for place, each in enumerate(spec.get(key) or []):
            texts.append((f"spec.{key}[{place}].{field}", each.get(field) or "", returns))
    return _uncompiled(texts, policy=True)


def _too_long(value: Any, path: str) -> list[FieldProblem]:
    """The problem of expressions that are too long together to be compiled."""
    size = _length(value)
    if size <= MAX_EXPRESSIONS:
        return []
    return [invalid(path, size, f"its expressions may have {MAX_EXPRESSIONS} characters together")]


def _length(value: Any) -> int:
    if isinstance(value, list):
        return sum(map(_length, value))
    if not isinstance(value, dict):
        return 0
    texts = [part for key, part in value.items() if key in _EXPRESSIONS and isinstance(part, str)]
    return sum(map(len, texts)) + sum(map(_length, value.values()))


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
        policy = spec.get("policyName")
        found = every("spec.policyName", policy, dns_subdomain(policy)) if policy else [required("spec.policyName")]
        if "paramRef" in spec:
            found += _param_ref(spec["paramRef"], "spec.paramRef")
        return found + _actions(spec.get("validationActions") or [], "spec.validationActions")


def _actions(actions: list[str], path: str) -> list[FieldProblem]:
    if not actions:
        return [required(path, "at least one validation action is required")]
    found = [duplicate(f"{path}[{place}]", each) for place, each in enumerate(actions) if each in actions[:place]]
    if {"Deny", "Warn"} <= set(actions):
        sentence = (
            "must not contain both Deny and Warn (repeating the same validation failure information in the API "
            "response and headers serves no purpose)"
        )
        found.append(invalid(path, actions, sentence))
    return found


def _param_ref(reference: dict[str, Any], path: str) -> list[FieldProblem]:
    name, selector = reference.get("name"), reference.get("selector")
    found: list[FieldProblem] = []
    if name and selector is not None:
        found += [
            forbidden(f"{path}.{key}", "name and selector are mutually exclusive") for key in ("name", "selector")
        ]
    elif not name and selector is None:
        found.append(required(path, "one of name or selector must be specified"))
    found += every(f"{path}.name", name, path_segment(name)) if name else []
    found += label_selector(selector, f"{path}.selector")
    action = reference.get("parameterNotFoundAction")
    if not action:
        found.append(required(f"{path}.parameterNotFoundAction"))
    elif action not in ("Deny", "Allow"):
        sentence = f'Unsupported value: {show(action)}: supported values: "Deny", "Allow"'
        found.append(FieldProblem(f"{path}.parameterNotFoundAction", sentence, "FieldValueNotSupported"))
    return found


class CustomResourceStrategy(BuiltinStrategy):
    """CustomResourceDefinition: its default names. Its schema is validated in `hortus.apiserver.crds`."""

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
    def complete(self, obj: Object, context: WriteContext) -> None:
        if not obj["spec"].get("service"):
            condition = {**LOCAL_CONDITION, "lastTransitionTime": format_time(context.now)}
            obj["status"] = {"conditions": [condition]}

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec, name = obj["spec"], obj["metadata"].get("name", "")
        group, version = spec.get("group", ""), spec.get("version", "")
        found: list[FieldProblem] = []
        if name != (expected := f"{version}.{group}"):
            found.append(invalid("metadata.name", name, f'must be `spec.version+"."+spec.group`: "{expected}"'))
        if not group and version != "v1":
            sentence = "only v1 may have an empty group and it better be legacy kube"
            found.append(required("spec.group", sentence))
        elif group:
            found += every("spec.group", group, dns_subdomain(group))
        found += every("spec.version", version, dns_1035_label(version))
        for field, most in (("groupPriorityMinimum", 20000), ("versionPriority", 1000)):
            number = spec.get(field) or 0
            if not 0 < number <= most:
                found.append(invalid(f"spec.{field}", number, f"must be positive and less than {most}"))
        return found + (_remote(spec) if spec.get("service") is not None else _local(spec))


def _local(spec: dict[str, Any]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    if spec.get("caBundle"):
        size = f"{len(base64.b64decode(spec['caBundle']))} bytes"
        found.append(invalid("spec.caBundle", size, "local APIServices may not have a caBundle"))
    if spec.get("insecureSkipTLSVerify"):
        sentence = "local APIServices may not have insecureSkipTLSVerify"
        found.append(invalid("spec.insecureSkipTLSVerify", True, sentence))
    return found


def _remote(spec: dict[str, Any]) -> list[FieldProblem]:
    service = spec["service"]
    found = [required(f"spec.service.{field}") for field in ("namespace", "name") if not service.get(field)]
    problems = port_number(service.get("port"))
    if problems:
        detail = f"port is not valid: {', '.join(problems)}"
        found.append(invalid("spec.service.port", service.get("port"), detail))
    if spec.get("insecureSkipTLSVerify") and spec.get("caBundle"):
        sentence = "may not be true if caBundle is present"
        found.append(invalid("spec.insecureSkipTLSVerify", True, sentence))
    return found


STRATEGIES: dict[str, type[BuiltinStrategy]] = {
    "admission.MutatingWebhookConfiguration": WebhookStrategy,
    "admission.ValidatingWebhookConfiguration": WebhookStrategy,
    "admission.ValidatingAdmissionPolicy": PolicyStrategy,
    "admission.ValidatingAdmissionPolicyBinding": PolicyBindingStrategy,
    "apiextensions.CustomResourceDefinition": CustomResourceStrategy,
    "apiregistration.APIService": ApiServiceStrategy,
}
