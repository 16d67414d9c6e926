"""Makes objects of rendered files: documents split, hooks set apart, everything in the order of installation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec

from hortus.kube.objects import Object
from hortus.render.gotemplate import goyaml
from hortus.render.gotemplate.functions.strings import SPACES
from hortus.render.helm.decoding import TOP, DecodingError, struct, table, text_map
from hortus.render.helm.decoding import text as text_of
from hortus.render.helm.errors import ChartError

INSTALL_ORDER = (
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
)
_PLACES = {kind: place for place, kind in enumerate(INSTALL_ORDER)}
HOOK = "helm.sh/hook"
_EVENTS = frozenset(
    f"{when}-{what}" for when in ("pre", "post") for what in ("install", "delete", "upgrade", "rollback")
) | {"test", "test-success"}
_BLANKS = " \t\n\f\r"
_NOTES = "NOTES.txt"


class Document(NamedTuple):
    """One document of a rendered file; `value` is None for comments alone."""

    source: str
    text: str
    value: Any
    kind: str


class Hook(msgspec.Struct, frozen=True):
    """A resource that runs at some moment of a release and is no part of it."""

    source: str
    object: Object
    events: tuple[str, ...]
    weight: int
    delete_policies: tuple[str, ...] = ()


class Rendered(msgspec.Struct, frozen=True):
    """A rendered chart: objects in the order of installation, hooks apart, and the text that Helm prints."""

    objects: list[Object]
    hooks: list[Hook]
    text: str


def split_documents(text: str) -> list[str]:
    """The documents of a file, at lines that begin with `---`, without blanks around them."""
    text = text.strip(SPACES)
    found: list[str] = []
    begin = at = 0
    if text.startswith("---"):
        begin = at = _after_blanks(text, 3)
    while (line := text.find("\n---", at)) >= 0:
        found.append(text[begin : _before_blanks(text, line, begin)])
        begin = at = _after_blanks(text, line + 4)
    found.append(text[begin:])
    return [part.strip(SPACES) for part in found if part]


def _after_blanks(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANKS:
        at += 1
    return at


def _before_blanks(text: str, at: int, least: int) -> int:
    while at > least and text[at - 1] in _BLANKS:
        at -= 1
    return at


def rendered(
    files: dict[str, str],
    *,
    crds: Sequence[tuple[str, bytes]] = (),
    skip_tests: bool = False,
) -> Rendered:
    """The files of a chart as objects and as text. Raises ChartError for what is no YAML."""
    documents: list[Document] = []
    hooks: list[tuple[Document, Hook]] = []
    for source in sorted(files):
        name = source.rpartition("/")[2]
        text = files[source]
        if name.startswith("_") or source.endswith(_NOTES) or not text.strip(SPACES):
            continue
        for part in split_documents(text):
            document, notes = _read(source, part)
            if HOOK not in notes:
                documents.append(document)
            elif _are_known(notes[HOOK]):
                hooks.append((document, _hook(document, notes)))
    documents.sort(key=lambda document: _place(document.kind))
    hooks.sort(key=lambda pair: _place(pair[0].kind))
    if skip_tests:
        hooks = [pair for pair in hooks if "test" not in pair[1].events]
    return _assembled(documents, [document for document, _ in hooks], [hook for _, hook in hooks], crds)


def from_text(text: str) -> Rendered:
    """Read back the output of helm: documents in their order, hooks apart. Raises ChartError."""
    objects: list[Object] = []
    hooks: list[Hook] = []
    source = ""
    for part in split_documents(text):
        if part.startswith("# Source: "):
            source = part.partition("\n")[0].removeprefix("# Source: ")
        document, notes = _read(source, part)
        if HOOK in notes and _are_known(notes[HOOK]):
            hooks.append(_hook(document, notes))
        elif document.value:
            objects.append(document.value)
    return Rendered(objects, hooks, text)


def _assembled(
    documents: list[Document], hook_documents: list[Document], hooks: list[Hook], crds: Sequence[tuple[str, bytes]]
) -> Rendered:
    objects: list[Object] = []
    text: list[str] = []
    for source, data in crds:
        content = data.decode("utf-8", "surrogateescape")
        text.append(f"---\n# Source: {source}\n{content}\n")
        objects += [part for part in (_definition(source, part) for part in split_documents(content)) if part]
    for document in documents:
        text.append(f"---\n# Source: {document.source}\n{document.text}\n")
        if document.value:
            objects.append(document.value)
    manifest = "".join(text).strip(SPACES) + "\n"
    end = "".join(f"---\n# Source: {document.source}\n{document.text}\n" for document in hook_documents)
    return Rendered(objects, hooks, manifest + end)


def _place(kind: str) -> tuple[int, str]:
    """Kinds that Helm does not know come last, by name."""
    place = _PLACES.get(kind)
    return (len(_PLACES), kind) if place is None else (place, "")


def _value(source: str, text: str) -> Any:
    try:
        # Helm writes a line's end after each document before the cluster gets it: a block scalar that is last has one.
        return goyaml.read(text + "\n", exact=True)
    except goyaml.GoYamlError as error:
        raise ChartError(f"YAML parse error on {source}: error converting YAML to JSON: {error}") from None


def _definition(source: str, text: str) -> dict[str, Any]:
    """A document of crds/."""
    try:
        return table(_value(source, text))
    except DecodingError as error:
        raise ChartError(f"YAML parse error on {source}: {error}") from None


_NAMES = {"name": text_of, "annotations": text_map}
_SHOWN = 'struct { Name string "json:\\"name\\""; Annotations map[string]string "json:\\"annotations\\"" }'
_HEAD = struct(
    {"apiVersion": text_of, "kind": text_of, "metadata": struct(_NAMES, name="", shown=_SHOWN)},
    name="SimpleHead",
    shown="releaseutil.SimpleHead",
)


def _read(source: str, text: str) -> tuple[Document, dict[str, str]]:
    """A document and its annotations."""
    value = _value(source, text)
    if value is None:
        return Document(source, text, value, ""), {}
    try:
        head = _HEAD(value, TOP)
    except DecodingError as error:
        raise ChartError(f"YAML parse error on {source}: {error}") from None
    return Document(source, text, value, head.get("kind", "")), head.get("metadata", {}).get("annotations", {})


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip().lower() for word in text.split(","))


def _are_known(events: str) -> bool:
    return all(word in _EVENTS for word in _words(events))


def _hook(document: Document, notes: dict[str, str]) -> Hook:
    weight = notes.get(f"{HOOK}-weight", "")
    digits = weight[1:] if weight[:1] in ("+", "-") else weight
    policies = f"{HOOK}-delete-policy"
    return Hook(
        document.source,
        document.value,
        tuple("test" if word == "test-success" else word for word in _words(notes[HOOK])),
        int(weight) if digits.isascii() and digits.isdigit() and len(digits) < 19 else 0,
        _words(notes[policies]) if policies in notes else (),
    )
