"""The admission webhook of agents: the rule table, with every finding at once, its value and its fix.

It lets through what it cannot read, and objects that are being deleted, whose finalizers must go whatever the spec
says. What was wrong before an update is a warning: an object from a time without rules can be changed, and is mended by
its owner. Nothing is asked of any server.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Final

from hortus.domains.agents.types import InstanaAgent, InstanaAgentRemote
from hortus.domains.agents.validation.findings import AgentFinding
from hortus.domains.agents.validation.registration import AGENT_PATH, REMOTE_PATH
from hortus.domains.agents.validation.rules import problems
from hortus.engine import NotReadable, read
from hortus.engine.serving import (
    ADMITTED,
    AdmissionJudge,
    AdmissionVerdict,
    AdmissionWebhooks,
    ReviewRequest,
    invalid_fields,
    warn,
)
from hortus.kube.objects import Object

_JUDGED: Final = ("CREATE", "UPDATE")
_Read = Callable[[Object], InstanaAgent | InstanaAgentRemote]


def add_reviews(webhooks: AdmissionWebhooks) -> None:
    """Add the webhooks of both kinds."""
    webhooks.add(AGENT_PATH, judge_of("InstanaAgent", lambda obj: read(InstanaAgent, obj)))
    webhooks.add(REMOTE_PATH, judge_of("InstanaAgentRemote", lambda obj: read(InstanaAgentRemote, obj)))


def judge_of(kind: str, typed: _Read) -> AdmissionJudge:
    """The judge of one kind, whose objects `typed` reads."""

    async def judge(request: ReviewRequest) -> AdmissionVerdict:
        if request.operation not in _JUDGED or request.object is None:
            return ADMITTED
        try:
            agent = typed(request.object)
        except NotReadable as error:
            return warn(str(error))
        if agent.metadata.deletion_timestamp is not None or agent.spec == type(agent.spec)():
            return ADMITTED
        found = problems(kind, agent.spec)
        wrong, old = _divided(found, _known(kind, typed, request.old_object))
        warnings = tuple(str(one) for one in (*old, *problems(kind, agent.spec, advice=True)))
        if not wrong:
            return AdmissionVerdict(warnings=warnings)
        return invalid_fields(kind, agent.metadata.name, [str(one) for one in wrong], warnings=warnings)

    return judge


def _divided(
    found: Iterable[AgentFinding], known: Iterable[AgentFinding]
) -> tuple[list[AgentFinding], list[AgentFinding]]:
    """The new findings, and those that were there before, wherever in its list the entry was."""
    left = Counter(_placeless(one) for one in known)
    new: list[AgentFinding] = []
    old: list[AgentFinding] = []
    for one in found:
        known_before = left[_placeless(one)] > 0
        left[_placeless(one)] -= known_before
        (old if known_before else new).append(one)
    return new, old


def _placeless(finding: AgentFinding) -> AgentFinding:
    return finding._replace(field=re.sub(r"\[[0-9]+\]", "[]", finding.field))


def _known(kind: str, typed: _Read, before: Object | None) -> list[AgentFinding]:
    """The findings in an object before its update."""
    if before is None:
        return []
    try:
        return problems(kind, typed(before).spec)
    except NotReadable:
        return []
