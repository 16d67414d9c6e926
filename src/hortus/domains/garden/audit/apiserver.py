"""The changes of a kube-apiserver's Deployment by which it sends its events to the buffer. Pure.

Contract: metal-stack/gardener-extension-audit, pkg/webhook/kapiserver. The policy is that of the Shoot, which Gardener
sets. A second review of the same object changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from hortus.domains.garden.audit.names import BACKEND, PORT, WEBHOOK_CONFIG, WEBHOOK_FILE
from hortus.domains.garden.audit.plan import EVENT_MARGIN, LARGEST_EVENT, AuditPlan
from hortus.kube.objects import Object

CONTAINER: Final = "kube-apiserver"
FOLDER: Final = "/etc/audit-webhook/config"
TO_BUFFER: Final = f"networking.resources.gardener.cloud/to-{BACKEND}-tcp-{PORT}"
CHECKSUM: Final = f"checksum/secret-{WEBHOOK_CONFIG}"
_TEMPLATE: Final = "/spec/template"


class _Container(msgspec.Struct, rename="camel"):
    name: str = ""
    args: list[str] | None = None
    command: list[str] | None = None
    volume_mounts: list[dict[str, Any]] | None = None


class _PodSpec(msgspec.Struct, rename="camel"):
    containers: list[_Container] = []
    volumes: list[dict[str, Any]] | None = None


class _TemplateMetadata(msgspec.Struct):
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None


class _Template(msgspec.Struct):
    metadata: _TemplateMetadata | None = None
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _Spec(msgspec.Struct):
    template: _Template = msgspec.field(default_factory=_Template)


class _Deployment(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def flags_of(plan: AuditPlan) -> dict[str, str]:
    """The flags of the kube-apiserver, by name."""
    return {
        "--audit-webhook-config-file": f"{FOLDER}/{WEBHOOK_FILE}",
        "--audit-webhook-mode": plan.effective_mode,
        "--audit-webhook-truncate-enabled": "true",
        "--audit-webhook-truncate-max-batch-size": str(LARGEST_EVENT - EVENT_MARGIN),
        "--audit-webhook-truncate-max-event-size": str(plan.largest_event - EVENT_MARGIN),
    }


def apiserver_patch(deployment: Object, plan: AuditPlan, *, checksum: str) -> list[Object]:
    """The operations of a JSON patch. `checksum` is that of the webhook's kubeconfig. Raises ValidationError."""
    template = msgspec.convert(deployment, _Deployment).spec.template
    found = [(index, one) for index, one in enumerate(template.spec.containers) if one.name == CONTAINER]
    if not found:
        return []
    (index, container), metadata = found[0], template.metadata or _TemplateMetadata()
    place = f"{_TEMPLATE}/spec/containers/{index}"
    # Gardener writes the flags as arguments; Deployments of older versions have all of it as the command.
    field, words = (
        ("args", container.args or [])
        if container.args or not container.command
        else (
            "command",
            container.command,
        )
    )
    mount = {"name": WEBHOOK_CONFIG, "mountPath": FOLDER, "readOnly": True}
    volume = {"name": WEBHOOK_CONFIG, "secret": {"secretName": WEBHOOK_CONFIG}}
    return [
        *_changed(f"{place}/{field}", words, _with_flags(words, flags_of(plan))),
        *_changed(f"{place}/volumeMounts", container.volume_mounts, _named(container.volume_mounts, mount)),
        *_changed(f"{_TEMPLATE}/spec/volumes", template.spec.volumes, _named(template.spec.volumes, volume)),
        *([] if template.metadata else [{"op": "add", "path": f"{_TEMPLATE}/metadata", "value": {}}]),
        *_added(f"{_TEMPLATE}/metadata/labels", metadata.labels, TO_BUFFER, "allowed"),
        *_added(f"{_TEMPLATE}/metadata/annotations", metadata.annotations, CHECKSUM, checksum),
    ]


def _with_flags(words: Sequence[str], flags: Mapping[str, str]) -> list[str]:
    """The arguments with the flags in the place of those with the same name, and the others at the end."""
    left = dict(flags)
    made = []
    for word in words:
        name = word.partition("=")[0]
        if name not in flags:
            made.append(word)
        elif name in left:
            made.append(f"{name}={left.pop(name)}")
    return made + [f"{name}={value}" for name, value in left.items()]


def _named(present: Sequence[Mapping[str, Any]] | None, wanted: Object) -> list[Any]:
    kept = [dict(one) for one in present or ()]
    for index, one in enumerate(kept):
        if one.get("name") == wanted["name"]:
            # Fields that the API server has added by default stay, so that nothing changes.
            kept[index] = {**one, **{key: _over(one.get(key), value) for key, value in wanted.items()}}
            return kept
    return [*kept, wanted]


def _over(present: Any, wanted: Any) -> Any:
    return {**present, **wanted} if isinstance(present, Mapping) and isinstance(wanted, Mapping) else wanted


def _changed(path: str, present: object, wanted: object) -> list[Object]:
    return [] if present == wanted else [{"op": "add", "path": path, "value": wanted}]


def _added(path: str, present: Mapping[str, str] | None, key: str, value: str) -> list[Object]:
    return _changed(path, present, {**(present or {}), key: value})
