"""The audit events of one request: made at its stages, with the detail that the policy asks for."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import orjson
from aiohttp import web

from hortus.apiserver.audit.log import AuditLog
from hortus.apiserver.audit.policy import LEVEL_NAMES, AuditPolicy, AuditVerdict, Level, Question
from hortus.apiserver.audit.redaction import may_be_shown, redacted, without_managed_fields
from hortus.apiserver.authn.identity import UserInfo
from hortus.apiserver.http import Reply, RequestInfo, media_type_of
from hortus.apiserver.remarks import Remarks, remarks
from hortus.kube import yaml
from hortus.kube.clock import Clock
from hortus.kube.objects import Object, format_micro_time

_NOBODY = UserInfo("")
_LONGEST_ID = 64
_INCOMPLETE = "audit.hortus.dev/incomplete"
"""Annotation of an event without its bodies, with the reason why they could not be written."""
_NO_UTF8 = re.compile("[\ud800-\udfff]")
"""Bytes that Python keeps in texts as halves of surrogate pairs (PEP 383), and halves that were sent as such."""
_log = logging.getLogger("hortus.apiserver.audit")
_SHOWN_STATUS = ("status", "message", "reason", "details", "code")


class Auditor:
    def __init__(self, policy: AuditPolicy, log: AuditLog, clock: Clock) -> None:
        self._policy = policy
        self.log = log
        self.clock = clock

    def begin(self, request: web.BaseRequest) -> RequestRecord:
        """Begins the record of a request whose sender is not known yet."""
        said = remarks()
        said.audit_id = _text(request.headers.get("Audit-Id", ""))[:_LONGEST_ID] or str(uuid4())
        entry = RequestRecord(self, request, said)
        said.on_start = entry.started
        return entry

    def verdict(self, info: RequestInfo, user: UserInfo) -> AuditVerdict:
        path = "" if info.resource else info.path
        asked = Question(
            user.username,
            user.groups,
            info.verb,
            info.group,
            info.resource,
            info.subresource,
            info.namespace,
            info.name,
            path,
        )
        return self._policy.verdict(asked)


class RequestRecord:
    """The events of one request."""

    def __init__(self, auditor: Auditor, request: web.BaseRequest, said: Remarks) -> None:
        self._auditor = auditor
        self._request = request
        self._said = said
        self._at = auditor.clock.now()
        self._info: RequestInfo | None = None
        self._user = _NOBODY
        self._verdict: AuditVerdict | None = None

    def received(self, info: RequestInfo, user: UserInfo) -> None:
        """Records the request and its user, after impersonation."""
        self._info, self._user = info, user
        self._record(info, "RequestReceived")

    def started(self) -> None:
        """Records the start of a streamed answer."""
        if self._info is not None:
            self._record(self._info, "ResponseStarted", code=200)

    def done(self, info: RequestInfo, code: int, reply: Reply | None) -> None:
        """Records the answer, or the end of the stream; `info` may be all that is known."""
        self._record(
            info,
            "ResponseComplete",
            code=code,
            complete=lambda event, verdict: self._complete(event, info, verdict, reply),
        )

    def _record(
        self,
        info: RequestInfo,
        stage: str,
        *,
        code: int = 0,
        complete: Callable[[Object, AuditVerdict], None] | None = None,
    ) -> None:
        """Writes an event for every request: one that cannot be written whole is written without bodies."""
        verdict = self._judged(info)
        if not verdict.level or stage in verdict.omitted:
            return
        event = self._event(info, verdict, stage)
        if code:
            event["responseStatus"] = {"metadata": {}, "code": code}
        try:
            if complete is not None:
                complete(event, verdict)
            line = orjson.dumps(event)
        except Exception as error:
            # Bodies are untrusted, and no failure to read them may keep the request out of the log.
            _log.warning(
                "an audit event is written without its bodies", extra={"audit": self._said.audit_id}, exc_info=error
            )
            bare = self._event(info, verdict, stage)
            bare["responseStatus"] = {"metadata": {}, "code": code}
            bare["annotations"] = {_INCOMPLETE: type(error).__name__}
            line = orjson.dumps(bare)
        self._auditor.log.write(line)

    def _complete(self, event: Object, info: RequestInfo, verdict: AuditVerdict, reply: Reply | None) -> None:
        """Adds the result of the request, and its bodies at the level of the policy."""
        shown = may_be_shown(info.group, info.resource, info.subresource)
        status: Object = event["responseStatus"]
        answer = _decoded(reply.body, reply.content_type) if reply is not None and _worth(reply.code, verdict) else None
        if isinstance(answer, dict) and answer.get("kind") == "Status":
            status_shown = redacted(answer, info.group, info.resource)
            status |= {key: status_shown[key] for key in _SHOWN_STATUS if key in status_shown}
        sent = self._sent(info, verdict)
        if info.resource and info.verb == "create" and not info.name:
            # kube-apiserver takes the name of what is created from the body, at every level.
            event["objectRef"].update(_named(sent))
        if info.resource and shown and verdict.level >= Level.REQUEST:
            self._add(event, "requestObject", sent, info, verdict)
        if info.resource and shown and verdict.level >= Level.REQUEST_RESPONSE:
            self._add(event, "responseObject", answer, info, verdict)
        if self._said.annotations:
            event["annotations"] = self._said.annotations

    def _sent(self, info: RequestInfo, verdict: AuditVerdict) -> Any:
        """The body of a request, where the level includes it."""
        if not info.resource or info.method in ("GET", "HEAD"):
            return None
        if verdict.level < Level.REQUEST and (info.verb != "create" or info.name):
            return None
        return _decoded(self._said.body, self._request.headers.get("Content-Type", ""))

    def _judged(self, info: RequestInfo) -> AuditVerdict:
        if self._verdict is None:
            self._verdict = self._auditor.verdict(info, self._said.impersonator or self._user)
        return self._verdict

    def _event(self, info: RequestInfo, verdict: AuditVerdict, stage: str) -> Object:
        request, impersonator = self._request, self._said.impersonator
        event: Object = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": LEVEL_NAMES[verdict.level],
            "auditID": self._said.audit_id,
            "stage": stage,
            "requestURI": _text(request.raw_path),
            "verb": info.verb,
            "user": _plain((impersonator or self._user).to_json()),
        }
        if impersonator is not None and self._user is not _NOBODY:
            event["impersonatedUser"] = _plain(self._user.to_json())
        if request.remote:
            event["sourceIPs"] = [request.remote]
        event["userAgent"] = _text(request.headers.get("User-Agent", ""))
        if info.resource:
            event["objectRef"] = _plain(_reference(info))
        event["requestReceivedTimestamp"] = format_micro_time(self._at)
        event["stageTimestamp"] = format_micro_time(self._auditor.clock.now())
        return event

    def _add(self, event: Object, field: str, body: Any, info: RequestInfo, verdict: AuditVerdict) -> None:
        if body is None:
            return
        body = redacted(body, info.group, info.resource)
        event[field] = without_managed_fields(body) if verdict.without_managed_fields else body


def _worth(code: int, verdict: AuditVerdict) -> bool:
    """Reports whether the answer is decoded: for its Status, or because the level includes all of it."""
    return code >= 400 or verdict.level >= Level.REQUEST_RESPONSE


def _reference(info: RequestInfo) -> Object:
    found = {
        "resource": info.resource,
        "namespace": info.namespace,
        "name": info.name,
        "apiGroup": info.group,
        "apiVersion": info.version,
        "subresource": info.subresource,
    }
    return {key: value for key, value in found.items() if value}


def _text(text: str) -> str:
    """The text with bytes that are not UTF-8 as `\\xff`; JSON could not hold them."""
    return text if text.isascii() else _NO_UTF8.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code - 0xDC00:02x}" if 0xDC80 <= code <= 0xDCFF else f"\\u{code:04x}"


def _plain(value: Any) -> Any:
    """`_text` for all texts of a document."""
    if isinstance(value, dict):
        return {_text(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return _text(value) if isinstance(value, str) else value


def _named(sent: Any) -> Object:
    metadata = sent.get("metadata") if isinstance(sent, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return {"name": name} if isinstance(name, str) and name else {}


def _decoded(body: bytes, content_type: str) -> Any:
    """A body as JSON; None for what is neither JSON nor YAML. Protobuf is not decoded for the log."""
    media = media_type_of(content_type)
    if not body:
        return None
    try:
        if media.endswith("yaml"):
            return yaml.load(body.decode())
        return orjson.loads(body) if media.endswith("json") or not media else None
    except (ValueError, RecursionError):
        return None
