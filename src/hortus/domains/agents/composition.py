"""Puts the controllers of this domain together for a process."""

from __future__ import annotations

from hortus.domains import ProcessContext
from hortus.domains.agents.fleet.composition import add_fleet
from hortus.domains.agents.settings import fleet_settings


def add_to(process: ProcessContext) -> None:
    """Add the controllers to a process. Raises FlagError."""
    if process.values["inventory"]:
        add_fleet(
            process.manager,
            client=process.client,
            pool=process.pool,
            gate=process.gate,
            leftovers=process.leftovers,
            settings=fleet_settings(process.values),
        )
