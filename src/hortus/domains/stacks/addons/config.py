"""clusteraddon.yaml: the stages in which the addons of a release are applied and deleted, by runtime hook."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

import msgspec

from hortus.kube import durations, yaml

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class RuntimeHook(StrEnum):
    """The runtime hooks of Cluster API that have stages."""

    INITIALIZED = "AfterControlPlaneInitialized"
    BEFORE_UPGRADE = "BeforeClusterUpgrade"
    AFTER_UPGRADE = "AfterClusterUpgrade"


class StageAction(StrEnum):
    """The action of a stage."""

    APPLY = "apply"
    DELETE = "delete"


class AddonConfigError(ValueError):
    """clusteraddon.yaml cannot be used; the message names the field, the value and the fix."""


class StageObject(msgspec.Struct, frozen=True, rename="camel"):
    """An object of the workload cluster that an expression reads."""

    key: str
    """The variable of the expression."""
    api_version: str
    kind: str
    name: str
    namespace: str = ""


class StageCondition(msgspec.Struct, frozen=True):
    """A condition that a stage waits for."""

    conditions: str
    """The expression in CEL."""
    objects: tuple[StageObject, ...] = ()
    timeout: float | None = None
    """Seconds after which the wait is reported as an error; None reports none."""


class AddonStageSpec(msgspec.Struct, frozen=True):
    """One stage: a chart, and the conditions before and after it."""

    name: str
    """The chart's folder in the addon archive."""
    action: StageAction
    before: StageCondition | None = None
    after: StageCondition | None = None


class AddonConfig(msgspec.Struct, frozen=True):
    """The stages of a release by the name of their hook. Hooks that are not known are kept and never run."""

    stages: dict[str, tuple[AddonStageSpec, ...]]

    def of(self, hook: str) -> tuple[AddonStageSpec, ...]:
        """The stages of a hook; none where the release has none for it."""
        return self.stages.get(hook, ())

    def applied_charts(self, hook: str) -> tuple[str, ...]:
        """The charts whose objects a cluster has after a hook.

        All charts that any hook of the release applies, without the ones that this hook deletes.
        """
        deleted = {stage.name for stage in self.of(hook) if stage.action is StageAction.DELETE}
        every = [stage for found in self.stages.values() for stage in found if stage.action is StageAction.APPLY]
        return tuple(dict.fromkeys(stage.name for stage in every if stage.name not in deleted))


class _Condition(msgspec.Struct):
    conditions: str = ""
    objects: list[StageObject] | None = None
    timeout: str = ""


class _Stage(msgspec.Struct, rename="camel"):
    name: str
    action: str = StageAction.APPLY.value
    wait_for_pre_condition: _Condition | None = None
    wait_for_post_condition: _Condition | None = None


class _Document(msgspec.Struct, rename="camel"):
    addon_stages: dict[str, list[_Stage] | None] | None = None


def parse_config(text: bytes) -> AddonConfig:
    """Raises AddonConfigError. As in the Go system unknown fields are left out, and any action but apply deletes."""
    try:
        found = msgspec.convert(yaml.load(text) or {}, _Document)
    except yaml.YamlError as error:
        raise AddonConfigError(f"clusteraddon.yaml: {error}") from None
    except msgspec.ValidationError as error:
        raise AddonConfigError(f"clusteraddon.yaml: {error}") from None
    stages = found.addon_stages or {}
    return AddonConfig({hook: _stages(hook, listed or ()) for hook, listed in stages.items()})


def _stages(hook: str, listed: Sequence[_Stage]) -> tuple[AddonStageSpec, ...]:
    return tuple(_stage(f"addonStages.{hook}[{index}]", stage) for index, stage in enumerate(listed))


def _stage(path: str, stage: _Stage) -> AddonStageSpec:
    if not stage.name or "/" in stage.name or stage.name in (".", ".."):
        raise AddonConfigError(
            f"clusteraddon.yaml: {path}.name: {stage.name!r} is no folder of the addon archive: name one"
        )
    action = StageAction.APPLY if stage.action == StageAction.APPLY else StageAction.DELETE
    return AddonStageSpec(
        name=stage.name,
        action=action,
        before=_condition(f"{path}.waitForPreCondition", stage.wait_for_pre_condition),
        after=_condition(f"{path}.waitForPostCondition", stage.wait_for_post_condition),
    )


def _condition(path: str, given: _Condition | None) -> StageCondition | None:
    if given is None or not given.conditions.strip():
        return None
    keys: set[str] = set()
    for index, obj in enumerate(given.objects or ()):
        if not _NAME.fullmatch(obj.key) or obj.key in keys:
            raise AddonConfigError(
                f"clusteraddon.yaml: {path}.objects[{index}].key: {obj.key!r} must be the name of a variable, which no "
                "other object has"
            )
        keys.add(obj.key)
    return StageCondition(given.conditions, tuple(given.objects or ()), _timeout(path, given.timeout))


def _timeout(path: str, text: str) -> float | None:
    if not text:
        return None
    try:
        seconds = durations.seconds(text)
    except ValueError as error:
        raise AddonConfigError(f"clusteraddon.yaml: {path}.timeout: {error}") from None
    if seconds <= 0:
        raise AddonConfigError(f"clusteraddon.yaml: {path}.timeout: {text!r} must be longer than 0s")
    return seconds
