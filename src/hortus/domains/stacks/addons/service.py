"""Pure decisions about the addons of one Cluster: the run that is due, and the stages of a run."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from hortus.domains.stacks.addons.config import AddonStageSpec, RuntimeHook
from hortus.domains.stacks.names import STAGE_ANNOTATION
from hortus.domains.stacks.types import AddonStage, ClusterAddon

TARGET: Final = "fleet.hortus.dev/addon-run"
"""Annotation of a ClusterAddon: hook and ClusterClass of the run whose stages its status lists.

The status has no field for it, and without it the stages of a class that a Cluster has left would count as those of its
new one.
"""
PENDING_HOOKS: Final = "runtime.cluster.x-k8s.io/pending-hooks"
"""Annotation of a Cluster: the runtime hooks that Cluster API has still to call."""
CREATED: Final = "created"
UPGRADED: Final = "upgraded"


class StagePhase(StrEnum):
    """The phase of a stage in the status."""

    PENDING = "Pending"
    BEFORE = "waitingForPreCondition"
    ACTING = "applyingOrDeleting"
    AFTER = "waitingForPostCondition"
    DONE = "done"


class AddonRun(NamedTuple):
    """The stages of one hook for one class."""

    hook: str
    class_name: str

    def __str__(self) -> str:
        return f"{self.hook}/{self.class_name}"


class Awaiting(NamedTuple):
    """No run is due: Cluster API has to call a hook first."""

    hook: str
    message: str


def is_at_rest(addon: ClusterAddon, class_name: str, *, applied: bool) -> bool:
    """Reports whether the addons of the class are installed and no hook is in progress.

    `applied` is True where the condition HelmChartApplied is.
    """
    return applied and addon.spec.cluster_stack == class_name and not addon.spec.hook


def due_run(addon: ClusterAddon, class_name: str, *, pending: str, upgrades: bool) -> AddonRun | Awaiting:
    """The run that is due for a ClusterAddon with stages, which is not at rest.

    `pending` are the hooks that Cluster API has still to call; `upgrades` is True where the Cluster has to move to
    another Kubernetes version, so that Cluster API calls BeforeClusterUpgrade.
    """
    spec = addon.spec
    if spec.hook:
        return AddonRun(spec.hook, class_name)
    if not spec.cluster_stack:
        if RuntimeHook.INITIALIZED in pending.split(","):
            return Awaiting(RuntimeHook.INITIALIZED, f"Cluster API has not called {RuntimeHook.INITIALIZED} yet")
        return AddonRun(RuntimeHook.INITIALIZED, class_name)
    if spec.cluster_stack == class_name:
        return AddonRun(interrupted_hook(addon, class_name), class_name)
    if upgrades:
        text = f"Cluster API has not called {RuntimeHook.BEFORE_UPGRADE} yet: see the condition TopologyReconciled of"
        return Awaiting(RuntimeHook.BEFORE_UPGRADE, f"{text} Cluster {spec.cluster_ref.name}")
    return AddonRun(RuntimeHook.BEFORE_UPGRADE, class_name)


def interrupted_hook(addon: ClusterAddon, class_name: str) -> str:
    """The hook of the last run for a class whose addons are not reported as applied."""
    hook, _, noted = addon.metadata.annotations.get(TARGET, "").partition("/")
    if hook and noted == class_name:
        return hook
    installed_before = STAGE_ANNOTATION in addon.metadata.annotations
    return RuntimeHook.BEFORE_UPGRADE if installed_before else RuntimeHook.INITIALIZED


def is_begun(addon: ClusterAddon, run: AddonRun, stages: Sequence[AddonStageSpec]) -> bool:
    """Reports whether the stages in the status are those of the run.

    A ClusterAddon of the Go system has no annotation; its stages count where they are the same.
    """
    noted = addon.metadata.annotations.get(TARGET)
    if noted is not None and noted != str(run):
        return False
    listed = [(stage.name, stage.action) for stage in addon.status.stages]
    return bool(listed) and listed == [(stage.name, stage.action.value) for stage in stages]


def begun(stages: Sequence[AddonStageSpec]) -> list[AddonStage]:
    """The stages of a run that begins."""
    return [AddonStage(name=one.name, action=one.action.value, phase=StagePhase.PENDING.value) for one in stages]


def stage_annotation(addon: ClusterAddon) -> str:
    """The value of the annotation ClusterAddonStage after a run."""
    return UPGRADED if addon.spec.cluster_stack else CREATED
