"""Numbered audit events whose bytes follow from the number, so that an altered one is seen."""

from __future__ import annotations

import re

_EVENT = (
    b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"%012d","stage":"ResponseComplete",'
    b'"requestURI":"/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication-%d?timeout=10s",'
    b'"verb":"get","user":{"username":"system:serviceaccount:kube-system:metrics-server","uid":"%032x","groups":'
    b'["system:serviceaccounts","system:serviceaccounts:kube-system","system:authenticated"]},"sourceIPs":["10.1.%d.%d"],'
    b'"userAgent":"metrics-server/v0.7.2 (linux/amd64) kubernetes/%d","objectRef":{"resource":"configmaps","namespace":'
    b'"kube-system","name":"extension-apiserver-authentication-%d","apiVersion":"v1"},"responseStatus":{"metadata":{},'
    b'"code":200},"requestReceivedTimestamp":"2026-11-23T10:00:00.%06dZ","stageTimestamp":"2026-11-23T10:00:00.%06dZ",'
    b'"annotations":{"authorization.k8s.io/decision":"allow","authorization.k8s.io/reason":"allowed by RoleBinding"}}'
)
_NUMBER = re.compile(rb'"auditID":"(\d{12})"')
_HEAD = b'{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":['


def event(number: int) -> bytes:
    mixed = number * 2654435761 % 1_000_003
    return _EVENT % (
        number,
        mixed,
        number * 0x9E3779B97F4A7C15 % (1 << 128),
        mixed % 256,
        number % 256,
        mixed,
        number,
        mixed % 1_000_000,
        number % 1_000_000,
    )


def event_list(first: int, end: int) -> bytes:
    """The body of a webhook with the events from `first` to before `end`."""
    return _HEAD + b",".join(map(event, range(first, end))) + b"]}"


def number_of(line: bytes) -> int | None:
    """The number of a line that is an event, byte for byte; None for one of the spool's own reports.

    Raises ValueError for an event that was altered.
    """
    if line.startswith(b'{"kind":"SpoolReport"'):
        return None
    found = _NUMBER.search(line)
    if found is None or event(number := int(found[1])) != line:
        raise ValueError(f"an altered event: {line[:200]!r}")
    return number
