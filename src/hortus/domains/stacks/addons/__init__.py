"""Addons: the objects of a release in the workload clusters of the Clusters that use it."""
