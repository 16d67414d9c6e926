"""The steps that a node still has to do, as they stand in `last-computed-osc-changes.yaml`.

A `ChangeSet` is written to disk before the first step and again after each one, so that a killed agent goes on with the
rest. Steps name paths and units only; contents come from the configuration with the same checksum.
"""

from __future__ import annotations

from typing import Literal

import msgspec

Verb = Literal["restart", "stop"]


class NodeStep(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, tag_field="step"):
    """One thing to do on the node. Doing it twice is the same as doing it once."""


class PatchContainerd(NodeStep, frozen=True, tag="containerdConfig"):
    pass


class WriteFile(NodeStep, frozen=True, tag="file"):
    path: str


class WriteRegistry(NodeStep, frozen=True, tag="registry"):
    """With a probe, the file is written once all hosts answer, while other steps go on."""

    upstream: str
    probe: bool = False


class CopyFromImage(NodeStep, frozen=True, tag="imageFile"):
    path: str


class WriteUnit(NodeStep, frozen=True, tag="unit"):
    name: str
    removed_drop_ins: tuple[str, ...] = ()
    removed_content: bool = False
    """True for a unit whose file was ours, and that is one of the system with drop-ins of ours now."""


class RemoveUnit(NodeStep, frozen=True, tag="removedUnit"):
    name: str
    ours: bool = True
    """False for a unit of the system that had drop-ins of ours only: it goes on without them."""
    drop_ins: tuple[str, ...] = ()


class ReloadUnits(NodeStep, frozen=True, tag="daemonReload"):
    pass


class RestartAgent(NodeStep, frozen=True, tag="restartAgent"):
    since: str = ""
    """The invocation of the agent at which this step was recorded."""


class CommandUnit(NodeStep, frozen=True, tag="unitCommand"):
    name: str
    verb: Verb
    since: str = ""
    """The unit's invocation before the command. systemd gives another one at each start, so a unit that has another
    one now was restarted, whether or not this process knows."""


class AwaitRegistries(NodeStep, frozen=True, tag="awaitRegistries"):
    pass


class RemoveRegistry(NodeStep, frozen=True, tag="removedRegistry"):
    upstream: str


class RemoveFile(NodeStep, frozen=True, tag="removedFile"):
    path: str


class InPlaceStep(NodeStep, frozen=True):
    """A step that is done once the node is drained for it."""


class ResetCpuManager(InPlaceStep, frozen=True, tag="resetCpuManager"):
    """Stops the kubelet and removes its state of CPUs, with which it does not start under another policy."""


class AwaitKubelet(InPlaceStep, frozen=True, tag="awaitKubelet"):
    """Waits until the kubelet is healthy with what was updated in place."""


class UpdateOs(InPlaceStep, frozen=True, tag="osUpdate"):
    """Runs the update command of the configuration, after which the machine starts again."""

    version: str
    boot: str = ""
    """The boot in which the command was begun; a later one shows whether it led to the version."""
    ran: bool = False
    """True when the command has succeeded in that boot."""
    failed: bool = False
    """True when the Node says that the update has failed; it is tried again once the label is taken off."""


class SyncTokens(InPlaceStep, frozen=True, tag="tokens"):
    """Compares the tokens of the node with their Secrets, after a rotation of the key of service accounts."""


class RenewAgent(InPlaceStep, frozen=True, tag="agentCredentials"):
    """Requests a certificate for this agent from the new authority, and starts the agent with it."""


class RebootstrapKubelet(InPlaceStep, frozen=True, tag="kubeletCredentials"):
    """Has the kubelet request a certificate from the new authority."""

    since: str = ""
    """The invocation of the kubelet that still has the old one."""


class FinishUpdate(NodeStep, frozen=True, tag="inPlaceUpdate"):
    """Deletes the pods that outlived the drain, and labels the Node, where it was drained or an update has failed.

    The machine controller waits for the label, so a configuration that has nothing to update in place sets it too."""

    pods: tuple[str, ...] | None = None
    """The pods to delete, as namespace/name/uid; None until they are listed."""


AnyStep = (
    PatchContainerd
    | WriteFile
    | WriteRegistry
    | CopyFromImage
    | WriteUnit
    | RemoveUnit
    | ReloadUnits
    | RestartAgent
    | CommandUnit
    | AwaitRegistries
    | RemoveRegistry
    | RemoveFile
    | ResetCpuManager
    | AwaitKubelet
    | UpdateOs
    | SyncTokens
    | RenewAgent
    | RebootstrapKubelet
    | FinishUpdate
)


class ChangeSet(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The steps that remain of the configuration with this checksum."""

    checksum: str
    steps: tuple[AnyStep, ...] = ()

    @property
    def in_place(self) -> bool:
        """True while a part of an update in place is left."""
        return any(isinstance(step, InPlaceStep) for step in self.steps)

    def without(self, step: AnyStep) -> ChangeSet:
        return msgspec.structs.replace(self, steps=tuple(each for each in self.steps if each is not step))

    def replaced(self, old: AnyStep, new: AnyStep) -> ChangeSet:
        return msgspec.structs.replace(self, steps=tuple(new if each is old else each for each in self.steps))
