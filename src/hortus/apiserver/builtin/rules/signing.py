"""Certificate signing requests: the requester, the conditions of an approval, and the writes of a signer.

Three endpoints write three parts of one object: the main one only metadata, `approval` the conditions, `status` the
certificate and every condition but Approved and Denied. `hortus.apiserver.authz.signers` authorizes approval and
signing. Source: k8s.io/kubernetes, pkg/registry/certificates and its validation.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from cryptography import x509

from hortus.apiserver.authn.certificates import parsed_request
from hortus.apiserver.builtin.problems import duplicate, every, forbidden, invalid, required, unsupported
from hortus.apiserver.builtin.strategy import BuiltinStrategy
from hortus.apiserver.resources.definition import FieldProblem, WriteContext
from hortus.kube.naming import dns_label, dns_subdomain
from hortus.kube.objects import Object, format_time

_CONDITIONS = "status.conditions"
_DECIDED = ("Approved", "Denied")
_FINAL = (*_DECIDED, "Failed")
_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"


class SigningRequestStrategy(BuiltinStrategy):
    """The requester is the user of the request, whatever the body names; the spec never changes."""

    def default(self, obj: Object, old: Object | None, context: WriteContext) -> None:
        if old is not None:
            obj["spec"] = old["spec"]
            return
        user, spec = context.user, obj["spec"]
        for key in ("username", "uid", "groups", "extra"):
            spec.pop(key, None)
        spec["username"] = user.username
        if user.uid:
            spec["uid"] = user.uid
        if user.groups:
            spec["groups"] = list(user.groups)
        if user.extra:
            spec["extra"] = {key: list(values) for key, values in user.extra.items()}

    def prepare_update(self, obj: Object, old: Object, context: WriteContext) -> None:
        if context.subresource not in ("approval", "status"):
            super().prepare_update(obj, old, context)
            return
        self._shape(obj, "status")
        before = old.get("status") or {}
        status = dict(obj.get("status") or {})
        if context.subresource == "approval":
            conditions = status.get("conditions")
            status = {**before, "conditions": conditions} if conditions else _without(before, "conditions")
        if status.get("conditions"):
            if context.subresource == "status":
                status["conditions"] = _keeping_decisions(status["conditions"], before.get("conditions") or [])
            status["conditions"] = _dated(status["conditions"], before.get("conditions") or [], context.now)
        if status or "status" in obj:
            obj["status"] = status

    def check(self, obj: Object, context: WriteContext) -> list[FieldProblem]:
        spec = obj["spec"]
        problem = _request_problem(spec.get("request") or "")
        found = [invalid("spec.request", spec.get("request") or None, problem)] if problem else []
        usages = spec.get("usages") or []
        if not usages:
            found.append(required("spec.usages"))
        found += [duplicate(f"spec.usages[{at}]", each) for at, each in enumerate(usages) if each in usages[:at]]
        found += _signer_problems(spec.get("signerName") or "")
        seconds = spec.get("expirationSeconds")
        if seconds is not None and seconds < 600:
            sentence = "may not specify a duration less than 600 seconds (10 minutes)"
            found.append(invalid("spec.expirationSeconds", seconds, sentence))
        return found

    def validate_update(self, obj: Object, old: Object, context: WriteContext) -> list[FieldProblem]:
        """Skips the request itself, which was validated at its creation and cannot change."""
        status, before = obj.get("status") or {}, old.get("status") or {}
        conditions, present = status.get("conditions") or [], before.get("conditions") or []
        found = _condition_problems(conditions, present)
        for type_ in _FINAL:
            if len(_of(conditions, type_)) < len(_of(present, type_)):
                found.append(forbidden(_CONDITIONS, f'updates may not remove a condition of type "{type_}"'))
        if context.subresource != "approval":
            found += _decision_problems(conditions, present)
        certificate, issued = status.get("certificate") or "", before.get("certificate") or ""
        if certificate == issued:
            return found
        if context.subresource != "status":
            found.append(forbidden("status.certificate", "updates may not set certificate content"))
        elif issued:
            found.append(forbidden("status.certificate", "updates may not modify existing certificate content"))
        problem = _certificate_problem(certificate)
        return [*found, invalid("status.certificate", "<certificate data>", problem)] if problem else found


def _without(given: Object, key: str) -> Object:
    return {name: value for name, value in given.items() if name != key}


def _of(conditions: list[Object], type_: str) -> list[Object]:
    return [each for each in conditions if each.get("type") == type_]


def _keeping_decisions(conditions: list[Object], present: list[Object]) -> list[Object]:
    """The conditions with the stored Approved and Denied, where there are as many of them."""
    result = list(conditions)
    for type_ in _DECIDED:
        stored, places = _of(present, type_), [at for at, each in enumerate(result) if each.get("type") == type_]
        if len(stored) == len(places):
            for at, each in zip(places, stored, strict=True):
                result[at] = each
    return result


def _dated(conditions: list[Object], present: list[Object], now: float) -> list[Object]:
    """The conditions with missing times filled in: that of an equal stored condition, or now."""
    moment, result = format_time(now), []
    for each in conditions:
        same = (
            one for one in present if (one.get("type"), one.get("status")) == (each.get("type"), each.get("status"))
        )
        since = next((one["lastTransitionTime"] for one in same if one.get("lastTransitionTime")), moment)
        result.append(
            {
                **each,
                "lastUpdateTime": each.get("lastUpdateTime") or moment,
                "lastTransitionTime": each.get("lastTransitionTime") or since,
            }
        )
    return result


def _condition_problems(conditions: list[Object], present: list[Object]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    types = [each.get("type") or "" for each in conditions]
    for at, each in enumerate(conditions):
        path, type_, status = f"{_CONDITIONS}[{at}]", types[at], each.get("status") or ""
        allowed = ["True"] if type_ in _FINAL else ["False", "True", "Unknown"]
        if not type_:
            found.append(required(f"{path}.type"))
        if not status:
            found.append(required(f"{path}.status"))
        elif status not in allowed:
            found.append(unsupported(f"{path}.status", status, allowed))
        other = {"Approved": "Denied", "Denied": "Approved"}.get(type_)
        if other in types[:at] and not all(_of(present, decided) for decided in _DECIDED):
            found.append(invalid(_CONDITIONS, type_, "Approved and Denied conditions are mutually exclusive"))
        if type_ in types[:at]:
            found.append(duplicate(f"{path}.type", type_))
    return found


def _decision_problems(conditions: list[Object], present: list[Object]) -> list[FieldProblem]:
    """Only `approval` may approve and deny."""
    found = []
    for type_ in _DECIDED:
        now, before = _of(conditions, type_), _of(present, type_)
        if len(now) > len(before):
            found.append(forbidden(_CONDITIONS, f'updates may not add a condition of type "{type_}"'))
        elif len(now) == len(before) and now != before:
            found.append(forbidden(_CONDITIONS, f'updates may not modify a condition of type "{type_}"'))
    return found


def _request_problem(encoded: str) -> str:
    try:
        parsed_request(base64.b64decode(encoded, validate=True))
    except (ValueError, binascii.Error) as problem:
        return str(problem)
    return ""


def _certificate_problem(encoded: str) -> str:
    """The reason why the text is anything but certificates in PEM; empty when it is valid."""
    if not encoded:
        return ""
    try:
        pem = base64.b64decode(encoded, validate=True)
        blocks = pem.count(b"-----BEGIN ")
        if not blocks or _END not in pem:
            return "must contain at least one CERTIFICATE PEM block"
        if pem.count(_BEGIN) != blocks:
            return "only CERTIFICATE PEM blocks are allowed"
        x509.load_pem_x509_certificates(pem)
    except (ValueError, binascii.Error) as problem:
        return str(problem)
    return ""


def _signer_problems(name: str) -> list[FieldProblem]:
    path = "spec.signerName"
    if not name:
        return [required(path)]
    if name == "kubernetes.io/legacy-unknown":
        return [invalid(path, name, "the legacy signerName is not allowed via this API version")]
    domain, _, rest = name.partition("/")
    if name.count("/") != 1:
        sentence = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(path, name, sentence)]
    found = _label_problems(path, domain, dns_label)
    if "." not in domain:
        found.append(invalid(path, domain, "should be a domain with at least two segments separated by dots"))
    return found + _label_problems(path, rest, dns_subdomain)


def _label_problems(path: str, text: str, rule: Any) -> list[FieldProblem]:
    """The problems of the first label that breaks the rule."""
    for label in text.split("."):
        problems = [f'validating label "{label}": {problem}' for problem in rule(label)]
        if problems:
            return every(path, text, problems)
    return []


STRATEGIES: dict[str, type[BuiltinStrategy]] = {"certificates.CertificateSigningRequest": SigningRequestStrategy}
