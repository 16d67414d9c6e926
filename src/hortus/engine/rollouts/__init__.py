"""Rollouts as domains meet them: the kinds, and the gate to ask before many clusters change."""

from hortus.engine.rollouts.gate import (
    ALLOWED,
    Answer,
    GateSource,
    Proposal,
    RolloutGate,
    policy_for,
    readable,
    waits_for,
)

__all__ = ["ALLOWED", "Answer", "GateSource", "Proposal", "RolloutGate", "policy_for", "readable", "waits_for"]
