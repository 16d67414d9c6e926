"""Cluster credentials: GardenerClusters become Secrets with kubeconfigs that work and rotate by themselves."""
