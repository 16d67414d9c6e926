"""The kinds of the simulated seed."""

from __future__ import annotations

from typing import Final

from hortus.kube.objects import Resource

SEED_CLUSTER: Final = "seed"
"""The logical cluster that stands for the seeds of all regions."""
SPARE_PREFIX: Final = "spare-"
"""Begin of the names of logical clusters that are no seeds until a gardenlet is deployed there; a number follows."""
SPARE_FOLDER: Final = "seeds"
"""Folder of their kubeconfigs in the state directory of `hortus up`."""
MANAGER: Final = "gardenlet"

_EXTENSIONS: Final = "extensions.gardener.cloud"
EXTENSIONS: Final = Resource(_EXTENSIONS, "v1alpha1", "extensions", "Extension")
CLUSTERS: Final = Resource(_EXTENSIONS, "v1alpha1", "clusters", "Cluster", namespaced=False)
INFRASTRUCTURES: Final = Resource(_EXTENSIONS, "v1alpha1", "infrastructures", "Infrastructure")
MANAGED_RESOURCES: Final = Resource("resources.gardener.cloud", "v1alpha1", "managedresources", "ManagedResource")
GATEWAYS: Final = Resource("networking.istio.io", "v1beta1", "gateways", "Gateway")
ENVOY_FILTERS: Final = Resource("networking.istio.io", "v1alpha3", "envoyfilters", "EnvoyFilter")
DEPLOYMENTS: Final = Resource("apps", "v1", "deployments", "Deployment")
NAMESPACES: Final = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
SECRETS: Final = Resource("", "v1", "secrets", "Secret")
