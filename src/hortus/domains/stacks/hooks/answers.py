"""Answers to runtime hooks, from the ClusterAddon as the API server has it.

Nothing is remembered here: an answer follows from the class and version that the ClusterAddon reports as installed.
Calls may therefore be repeated, and come to any replica, before and after a restart.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from hortus.domains.stacks.addons.config import RuntimeHook
from hortus.domains.stacks.addons.reasons import AddonCondition
from hortus.domains.stacks.addons.service import is_at_rest
from hortus.domains.stacks.types import ClusterAddon

RETRY: Final = 10
"""Seconds after which Cluster API asks again whether an upgrade may begin."""


class HookDecision(NamedTuple):
    """The answer to a hook, and the hook to note in the ClusterAddon."""

    note: str = ""
    """The value for spec.hook; empty leaves it as it is."""
    retry_after: int = 0
    """Seconds; 0 lets Cluster API go on."""
    message: str = ""


def after_initialized(addon: ClusterAddon, class_name: str) -> HookDecision:
    """Cluster API has initialized a control plane, and does not wait for the addons."""
    if is_installed(addon, class_name) or addon.spec.hook == RuntimeHook.INITIALIZED:
        return HookDecision()
    return HookDecision(note=RuntimeHook.INITIALIZED)


def before_upgrade(addon: ClusterAddon, class_name: str) -> HookDecision:
    """Cluster API waits until the addons of the class are installed."""
    if is_installed(addon, class_name):
        return HookDecision()
    message = f"the addons of {class_name} are not installed yet: see ClusterAddon {addon.metadata.name}"
    note = "" if addon.spec.hook == RuntimeHook.BEFORE_UPGRADE else RuntimeHook.BEFORE_UPGRADE.value
    return HookDecision(note=note, retry_after=RETRY, message=message)


def after_upgrade(addon: ClusterAddon, *, has_stages: bool) -> HookDecision:
    """Cluster API has upgraded a cluster, and does not wait for the stages that follow."""
    if not has_stages or addon.spec.hook == RuntimeHook.AFTER_UPGRADE:
        return HookDecision()
    return HookDecision(note=RuntimeHook.AFTER_UPGRADE)


def is_installed(addon: ClusterAddon, class_name: str) -> bool:
    """Reports whether the addons of a class are installed, and no hook is in progress."""
    applied = any(one.type == AddonCondition.CHART_APPLIED and one.status == "True" for one in addon.status.conditions)
    return is_at_rest(addon, class_name, applied=applied)
