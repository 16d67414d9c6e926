"""InstanaAgentRemote: one agent that monitors what is outside of the cluster."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

import msgspec

from hortus.domains.agents.kinds.core import (
    InstanaCreate,
    InstanaName,
    InstanaObjectInfo,
    InstanaServiceAccount,
    SemanticVersion,
)
from hortus.domains.agents.kinds.process import InstanaBaseAgent
from hortus.domains.agents.names import CATEGORIES, GROUP, VERSION
from hortus.kube.objects import Resource
from hortus.schema import Condition, Fields, Format, Kind, kind


class InstanaAgentRemoteSpec(Fields, frozen=True):
    """The agent, and the names under which it reports."""

    __schema__: ClassVar[dict[str, Any]] = {"required": ["agent", "zone"]}

    agent: InstanaBaseAgent = InstanaBaseAgent()
    """The agent itself."""
    zone: InstanaName = InstanaName()
    """The zone's name in the backend."""
    use_secret_mounts: bool | None = None
    """Give keys and passwords to the container as files instead of variables; not set means true."""
    rbac: InstanaCreate = InstanaCreate()
    """Accepted without effect."""
    service_account: InstanaServiceAccount = InstanaServiceAccount()
    """The ServiceAccount of the pod; its name has no effect."""
    hostname: InstanaName = InstanaName()
    """The host name under which the agent reports."""


class InstanaAgentRemoteStatus(Fields, frozen=True):
    """The agent as observed."""

    configsecret: InstanaObjectInfo | None = msgspec.field(name="configsecret", default=None)
    """The Secret with the agent's configuration."""
    deployment: InstanaObjectInfo | None = None
    """The Deployment of the agent."""
    conditions: tuple[Condition, ...] = ()
    """The availability of the agent, and the results of the last reconcile."""
    observed_generation: Annotated[int, Format("int64")] | None = None
    """The generation of the object that this status describes."""
    operator_version: SemanticVersion = ""
    """The version of the operator that wrote this status."""


@kind(
    group=GROUP,
    version=VERSION,
    plural="agentsremote",
    singular="agentremote",
    short_names=("ar",),
    categories=CATEGORIES,
    status=True,
)
class InstanaAgentRemote(Kind, frozen=True):
    """One monitoring agent for what runs outside of the cluster."""

    spec: InstanaAgentRemoteSpec = InstanaAgentRemoteSpec()
    """The agent, and the names under which it reports."""
    status: InstanaAgentRemoteStatus = InstanaAgentRemoteStatus()
    """The agent as observed."""


INSTANA_AGENTS_REMOTE: Final = Resource(GROUP, VERSION, "agentsremote", "InstanaAgentRemote")
