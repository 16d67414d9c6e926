"""The controllers of agents: InstanaAgent and InstanaAgentRemote reconciled, and nothing else."""
