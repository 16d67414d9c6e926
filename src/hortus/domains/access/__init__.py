"""Scoped access: a ClusterAccess becomes a Secret with a kubeconfig that may do what was asked for and no more."""
