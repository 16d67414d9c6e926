"""Custom resources: CustomResourceDefinition objects turned into served kinds, each logical cluster its own.

A CRD is served from the commit of its write on: its status (accepted names, established, stored versions) is set while
it is prepared, so there is nothing to wait for. Clusters with equal CRDs share compiled kinds by the digest of the
spec. The objects of a CRD in deletion are deleted first (finalizer `customresourcecleanup.apiextensions.k8s.io`).
Source: API docs, CustomResourceDefinition v1. Versions convert by the strategy `None` (apiVersion changes, fields stay)
or by a webhook (`conversion`).
"""

from hortus.apiserver.crds.conditions import CRD_GROUP, PLURAL
from hortus.apiserver.crds.controller import DefinitionController
from hortus.apiserver.crds.kinds import CustomKinds
from hortus.apiserver.crds.strategy import DefinitionStrategy, complete_definition, end_definition

__all__ = [
    "CRD_GROUP",
    "PLURAL",
    "CustomKinds",
    "DefinitionController",
    "DefinitionStrategy",
    "complete_definition",
    "end_definition",
]
