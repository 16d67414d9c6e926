"""Hortus: one control plane for fleets of Kubernetes clusters."""

__version__ = "0.1.0"
