"""Puts the controllers of this domain together for a process."""

from __future__ import annotations

from hortus.domains import ProcessContext
from hortus.domains.agents.fleet.composition import add_fleet
from hortus.domains.agents.operating.composition import add_agents
from hortus.domains.agents.operating.settings import operating_settings
from hortus.domains.agents.settings import fleet_settings
from hortus.domains.agents.validation.reviews import add_reviews


def add_to(process: ProcessContext) -> None:
    """Add the controllers to a process. Raises FlagError."""
    add_reviews(process.webhooks)
    add_agents(
        process.manager,
        client=process.client,
        deputies=process.deputies,
        namespace=process.namespace,
        settings=operating_settings(process.values),
    )
    if process.values["inventory"]:
        add_fleet(
            process.manager,
            client=process.client,
            pool=process.pool,
            deputies=process.deputies,
            gate=process.gate,
            leftovers=process.leftovers,
            settings=fleet_settings(process.values),
        )
