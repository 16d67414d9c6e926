"""Modules without a control plane: `hortus module install` brings one onto the cluster of a kubeconfig by itself.

What it installs is marked and applied as the controller of Manifests does it, so a control plane that takes the cluster
over finds every object as it would have made it.
"""
