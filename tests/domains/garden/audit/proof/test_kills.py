"""Acknowledged events arrive through kills of the receiver, of the sink, and of both.

tests/benchmarks/audit.py does the same with millions.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.domains.garden.audit.proof.events import event, number_of
from tests.domains.garden.audit.proof.proof import ProofRun


async def test_every_acknowledged_event_arrives_through_kills(tmp_path: Path) -> None:
    found = await ProofRun(tmp_path, 6_000, each=40).run(kills=3)
    assert (found.missing, found.kills) == (0, {"receiver": 1, "sink": 1, "both": 1})
    assert found.verification.findings == []


@pytest.mark.soak
@pytest.mark.timeout(900)
async def test_half_a_million_events_arrive_through_two_dozen_kills(tmp_path: Path) -> None:
    found = await ProofRun(tmp_path, 500_000, each=400, seed=2).run(kills=24)
    assert (found.missing, found.kills) == (0, {"receiver": 8, "sink": 8, "both": 8})
    assert found.verification.findings == []


def test_the_sink_of_the_proof_sees_an_altered_event() -> None:
    assert number_of(event(7)) == 7
    with pytest.raises(ValueError, match="an altered event"):
        number_of(event(7).replace(b'"get"', b'"put"'))
