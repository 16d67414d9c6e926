"""The kinds of the monitoring agent, a file each; `hortus.domains.agents.types` exports them."""
