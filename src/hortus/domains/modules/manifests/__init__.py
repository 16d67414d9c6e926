"""Manifests: the objects of one module, installed on one cluster."""
