"""Rollouts as domains meet them: the kinds, and the gate to ask before many clusters change."""

from typing import TYPE_CHECKING

from hortus.facade import lazy

if TYPE_CHECKING:
    from hortus.engine.rollouts.gate import (
        ALLOWED,
        Answer,
        GateSource,
        RolloutGate,
        policy_for,
        readable,
        waits_for,
    )
    from hortus.engine.rollouts.types import Proposal
else:
    __getattr__ = lazy(
        __name__,
        {"gate": "ALLOWED Answer GateSource RolloutGate policy_for readable waits_for", "types": "Proposal"},
    )

__all__ = ["ALLOWED", "Answer", "GateSource", "Proposal", "RolloutGate", "policy_for", "readable", "waits_for"]
