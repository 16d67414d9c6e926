"""The state of a module on one cluster, its reason, and the owner of the next step. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from hortus.domains.modules.kyma.resolution import ModuleRefusal, RefusedModule, Resolution
from hortus.domains.modules.names import State
from hortus.domains.modules.types import Kyma, Manifest, ModuleStatus

_NOBODY: Final = "nobody: it goes on by itself"
_TURNS: Final = {
    ModuleRefusal.INVALID: "cluster owner: name another channel, or ask the author of the module",
    ModuleRefusal.NO_RELEASE: "cluster owner: correct the module's name; `hortus module catalog` lists what is offered",
    ModuleRefusal.NO_VERSION: "cluster owner: choose a channel that the module has",
    ModuleRefusal.NO_TEMPLATE: "operator: publish the ModuleTemplate, or move the channel back",
    ModuleRefusal.MANDATORY: "cluster owner: take the module off the list; every cluster has it anyhow",
    ModuleRefusal.NOT_ALLOWED: "operator: label the Kyma for beta or internal modules, or allow the restricted module",
    ModuleRefusal.DOWNGRADE: "cluster owner: stay in the channel, or remove the module and add it again",
    ModuleRefusal.WAITS_FOR_WINDOW: "nobody: the window comes; spec.skipMaintenanceWindows of the Kyma goes before it",
    ModuleRefusal.WINDOW_UNKNOWN: "operator: correct the maintenance policy",
    ModuleRefusal.WAITS_FOR_MODULES: "cluster owner: add the modules that it needs, in a version that fits",
    ModuleRefusal.NO_COMPONENT: "operator: set spec.ocmComponentName of the ModuleReleaseMeta",
}
_STATES: Final = {
    State.READY: "nobody: all is as wanted",
    State.UNMANAGED: "cluster owner: the module is theirs; `hortus module manage` gives it back",
    State.WARNING: "cluster owner: see the reason",
    State.ERROR: "operator: see the reason; it is tried again by itself",
    State.DELETING: "cluster owner: delete the resources of the module's kinds, if the reason names some",
    State.PROCESSING: _NOBODY,
    State.NONE: _NOBODY,
}


_BY_OPERATORS: Final = "ModuleConfiguration "
_CONFIGURED: Final = "operator: correct that field of the ModuleConfiguration; the rest of it is in effect"


class ModuleExplanation(msgspec.Struct, omit_defaults=True, rename="camel"):
    """One module on one cluster."""

    module: str
    kyma: str
    state: str
    because: str
    turn: str
    """The owner of the next step, and the step."""
    wanted: str = ""
    """The version that the catalog has for the module's channel."""
    installed: str = ""
    manifest: str = ""
    operation: str = ""
    """The last step of the Manifest."""

    def lines(self) -> Iterator[str]:
        """Yields the explanation for a terminal."""
        named = {
            "Module": f"{self.module} on {self.kyma}",
            "State": self.state,
            "Because": self.because,
            "Wanted": self.wanted,
            "Installed": self.installed,
            "Manifest": f"{self.manifest}: {self.operation}" if self.operation else self.manifest,
            "Turn of": self.turn,
        }
        for name, text in named.items():
            if text:
                yield f"{name + ':':<12} {text}"


def explain(
    kyma: Kyma, name: str, status: ModuleStatus | None, resolution: Resolution, manifest: Manifest | None
) -> ModuleExplanation:
    """Explains a module of a Kyma."""
    state = State(status.state) if status else State.PROCESSING
    refused = resolution if isinstance(resolution, RefusedModule) else None
    waits = status is not None and status.maintenance
    if refused is not None and refused.refusal is ModuleRefusal.WINDOW_UNKNOWN and waits:
        # The policy is the control plane's file; its answer is in the status.
        refused = refused._replace(refusal=ModuleRefusal.WAITS_FOR_WINDOW)
    problem = manifest.status.last_operation if manifest else None
    because = (status.message if status else "") or (refused.message if refused else "")
    return ModuleExplanation(
        module=name,
        kyma=f"{kyma.metadata.namespace}/{kyma.metadata.name}",
        state=state,
        because=because or (problem.operation if problem else "not reconciled yet"),
        turn=_turn(refused, state, because),
        wanted=_wanted(resolution),
        installed=f"{status.version} (channel {status.channel})" if status and status.version else "",
        manifest=f"{manifest.metadata.name}, {manifest.status.state or 'new'}" if manifest else "",
        operation=problem.operation if problem and problem.operation != because else "",
    )


def _turn(refused: RefusedModule | None, state: State, because: str) -> str:
    if refused is not None:
        return _TURNS[refused.refusal]
    return _CONFIGURED if because.startswith(_BY_OPERATORS) else _STATES[state]


def _wanted(resolution: Resolution) -> str:
    if isinstance(resolution, RefusedModule):
        return f"channel {resolution.channel}" if resolution.channel else ""
    return f"{resolution.version} (channel {resolution.channel})"
