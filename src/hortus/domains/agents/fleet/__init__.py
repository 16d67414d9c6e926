"""The fleet form: AgentConfigurations give an agent to the clusters of the inventory.

`configurations` keeps an AgentPlacement for each cluster and agent; `placements` applies the agent's objects there.
`selection`, `versions` and `rendering` are the decisions, without I/O.
"""
