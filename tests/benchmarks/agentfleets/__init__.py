"""Parts of the benchmark of agents: the fleet and its configuration, what is seen of it, and arithmetic."""
