"""Flux: addons handed to its helm-controller, as HelmReleases with values that are resolved here."""
