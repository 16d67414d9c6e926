"""Clusters: a Runtime becomes a running, connected, guarded Gardener shoot, and is updated, suspended and removed."""
