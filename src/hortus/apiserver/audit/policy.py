"""The policy file: rules in order, of which the first that matches a request gives its level (audit.k8s.io/v1)."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from hortus.kube import yaml

_Stage = Literal["RequestReceived", "ResponseStarted", "ResponseComplete", "Panic"]


class PolicyError(ValueError):
    """The policy file cannot be used; the message names the file and the field."""


class Level(enum.IntEnum):
    """The level of detail of a record; each level includes the ones before it."""

    NONE = 0
    METADATA = 1
    REQUEST = 2
    REQUEST_RESPONSE = 3


_LEVELS = {
    "None": Level.NONE,
    "Metadata": Level.METADATA,
    "Request": Level.REQUEST,
    "RequestResponse": Level.REQUEST_RESPONSE,
}
LEVEL_NAMES = {level: name for name, level in _LEVELS.items()}


class Question(NamedTuple):
    """The attributes of a request that the policy matches; `path` is set for non-resource requests."""

    user: str
    groups: Sequence[str]
    verb: str
    group: str
    resource: str
    subresource: str
    namespace: str
    name: str
    path: str


class _GroupResources(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    group: str = ""
    resources: list[str] = []
    resource_names: list[str] = []

    def matches(self, asked: Question) -> bool:
        if self.group != asked.group:
            return False
        if not self.resources:
            return True
        if self.resource_names and asked.name not in self.resource_names:
            return False
        return any(_resource_matches(wanted, asked) for wanted in self.resources)


def _resource_matches(wanted: str, asked: Question) -> bool:
    whole = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    if wanted in ("*", whole) or wanted == f"{asked.resource}/*":
        return True
    return bool(asked.subresource) and wanted == f"*/{asked.subresource}"


class _Rule(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    level: Literal["None", "Metadata", "Request", "RequestResponse"]
    users: list[str] = []
    user_groups: list[str] = []
    verbs: list[str] = []
    resources: list[_GroupResources] = []
    namespaces: list[str] = []
    non_resource_urls: list[str] = msgspec.field(default_factory=list, name="nonResourceURLs")
    omit_stages: list[_Stage] = []
    omit_managed_fields: bool | None = None

    def matches(self, asked: Question) -> bool:
        if self.users and asked.user not in self.users:
            return False
        if self.user_groups and not set(self.user_groups) & set(asked.groups):
            return False
        if self.verbs and asked.verb not in self.verbs:
            return False
        if self.namespaces or self.resources:
            return self._resource_matches(asked)
        return not self.non_resource_urls or any(_path_matches(url, asked.path) for url in self.non_resource_urls)

    def _resource_matches(self, asked: Question) -> bool:
        if asked.path or (self.namespaces and asked.namespace not in self.namespaces):
            return False
        return not self.resources or any(each.matches(asked) for each in self.resources)


def _path_matches(wanted: str, path: str) -> bool:
    if not path:
        return False
    return wanted in ("*", path) or (wanted.endswith("*") and path.startswith(wanted[:-1]))


class _File(msgspec.Struct, forbid_unknown_fields=True, rename="camel"):
    api_version: Literal["audit.k8s.io/v1"]
    kind: Literal["Policy"]
    rules: list[_Rule]
    metadata: dict[str, Any] = {}
    omit_stages: list[_Stage] = []
    omit_managed_fields: bool = False


class AuditVerdict(NamedTuple):
    """The level and the omitted stages of one request."""

    level: Level
    omitted: frozenset[str] = frozenset()
    without_managed_fields: bool = False


_NOTHING = AuditVerdict(Level.NONE)


class AuditPolicy:
    def __init__(self, document: object) -> None:
        """Reads the decoded file. Raises PolicyError."""
        try:
            self._file = msgspec.convert(document, _File)
        except msgspec.ValidationError as error:
            raise PolicyError(str(error)) from None
        for index, rule in enumerate(self._file.rules):
            if rule.non_resource_urls and (rule.resources or rule.namespaces):
                raise PolicyError(
                    f"rules[{index}].nonResourceURLs: cannot be set together with resources or namespaces in one rule"
                )
        if not self._file.rules:
            raise PolicyError("rules: at least one rule is required")

    def verdict(self, asked: Question) -> AuditVerdict:
        """The verdict of the first rule that matches; without one nothing is recorded."""
        whole = self._file
        for rule in whole.rules:
            if rule.matches(asked):
                own = rule.omit_managed_fields
                return AuditVerdict(
                    _LEVELS[rule.level],
                    frozenset([*whole.omit_stages, *rule.omit_stages]),
                    whole.omit_managed_fields if own is None else own,
                )
        return _NOTHING


def read_policy(path: Path) -> AuditPolicy:
    """Reads a YAML file. Raises PolicyError naming it."""
    try:
        return AuditPolicy(yaml.load(path.read_text()))
    except (OSError, ValueError) as error:
        raise PolicyError(f"audit policy {path}: {error}") from None
