"""The InstanaAgentRemote controller: one agent in a Deployment, with its configuration and keys.

Conditions it owns: all of InstanaAgentRemotes. Objects it owns: those of `builders` and the dependents ConfigMap. The
ServiceAccount `instana-agent-remote` belongs to all Remotes of a namespace: the oldest shapes it, all are its owners.
It watches: InstanaAgentRemotes; its objects where others change them; Secrets that they name; InstanaAgents, since an
agent of the same name has objects of the same names.
It never: deletes the account that other Remotes use, or serves a Remote next to an InstanaAgent of its name.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hortus.domains.agents.builders import build_remote, owner_of, workload_name
from hortus.domains.agents.defaults import defaulted_remote
from hortus.domains.agents.operating import verdicts
from hortus.domains.agents.operating.base import AgentController
from hortus.domains.agents.operating.context import AgentContext
from hortus.domains.agents.operating.dependents import dependent_of
from hortus.domains.agents.operating.objects import DEPLOYMENTS, SECRETS
from hortus.domains.agents.operating.problems import problems_of_certificate, problems_of_remote
from hortus.domains.agents.operating.verdicts import AgentCondition, Workload
from hortus.domains.agents.types import InstanaAgentRemote
from hortus.engine import Cache, Wiring
from hortus.engine.indexes import by_namespace
from hortus.kube.objects import Object, ObjectKey
from hortus.schema import ObjectMeta

BY_NAMESPACE = "remotes by namespace"
_ACCOUNT = "ServiceAccount"


class InstanaAgentRemoteController(AgentController[InstanaAgentRemote]):
    """Reconciles one InstanaAgentRemote at a time."""

    kind = InstanaAgentRemote
    words = verdicts.REMOTE
    component = "instana-agent-remote"

    def __init__(self, wiring: Wiring[Any], *, agents: Cache, **parts: Any) -> None:
        super().__init__(wiring, **parts)
        self._agents = agents
        self.wiring.cache.raw.add_index(BY_NAMESPACE, by_namespace)

    def taken(self, agent: InstanaAgentRemote) -> str:
        key = ObjectKey(agent.metadata.namespace, agent.metadata.name)
        if key not in self._agents:
            return ""
        return (
            f"InstanaAgentRemote {key}: an InstanaAgent has this name in the namespace, and with it the Secrets "
            f"{key.name} and {key.name}-tls and the ConfigMap {key.name}-dependents: rename one of both"
        )

    def defaulted(self, agent: InstanaAgentRemote) -> InstanaAgentRemote:
        return defaulted_remote(agent)

    async def build(self, context: AgentContext[Any], agent: InstanaAgentRemote) -> None:
        context.facts = await self._world.remote_facts(agent)
        own = [obj for obj in build_remote(agent, context.facts) if dependent_of(obj).kind != _ACCOUNT]
        account = self._account([agent, *self._others(agent)]) if agent.spec.service_account.create else None
        context.wanted = own if account is None else [*own, account]

    def problems(self, context: AgentContext[Any], agent: InstanaAgentRemote) -> dict[str, str]:
        namespace = agent.metadata.namespace

        def exists(name: str) -> bool:
            return self._world.secrets.exists(ObjectKey(namespace, name))

        found = problems_of_remote(agent, exists=exists, keys=context.facts.keys_secret)
        return found | problems_of_certificate(agent, context.facts)

    # The shared account.

    def _others(self, agent: InstanaAgentRemote) -> list[InstanaAgentRemote]:
        """The other living Remotes of the namespace."""
        found = self.wiring.cache.by(BY_NAMESPACE, agent.metadata.namespace)
        return [
            defaulted_remote(one)
            for one in found
            if one.metadata.name != agent.metadata.name and not one.metadata.deletion_timestamp
        ]

    def siblings(self, agent: InstanaAgentRemote) -> list[ObjectMeta]:
        return [one.metadata for one in self._others(agent)]

    sharers = siblings

    def _account(self, remotes: Iterable[InstanaAgentRemote]) -> Object | None:
        """The account as the oldest Remote that creates one shapes it, with all of them as owners."""
        wanting = [one for one in remotes if one.spec.service_account.create]
        if not wanting:
            return None
        senior, *others = sorted(wanting, key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.name))
        facts = self._world.bare()
        found = next(obj for obj in build_remote(senior, facts) if dependent_of(obj).kind == _ACCOUNT)
        owners = [owner_of(senior), *({**owner_of(one), "controller": False} for one in others)]
        found["metadata"]["ownerReferences"] = sorted(owners, key=lambda owner: str(owner["name"]))
        return found

    async def hand_on(self, agent: InstanaAgentRemote) -> None:
        others = self._others(agent)
        account = self._account(others)
        if account is not None:
            await self._applier.share(account, agent.metadata.namespace, self.marking(agent))

    # Reporting.

    def availability(self, context: AgentContext[Any]) -> Iterable[AgentCondition]:
        wanted = [dependent_of(obj) for obj in context.wanted]
        found = tuple(Workload(one.name, self._objects.find(one)) for one in wanted if one.kind == "Deployment")
        yield verdicts.agents_available(self.words, found)

    def describe(self, context: AgentContext[Any]) -> None:
        name = workload_name(context.object)
        context.set_info("configsecret", self.info(context, SECRETS, f"{name}-config"))
        context.set_info("deployment", self.info(context, DEPLOYMENTS, name))


__all__ = ["BY_NAMESPACE", "InstanaAgentRemoteController"]
