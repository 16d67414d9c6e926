"""Central configuration: what operators decide about the modules of many clusters, before their users."""
