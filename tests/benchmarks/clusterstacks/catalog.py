"""Releases of cluster stacks, as many as wanted, and the objects that offer and use them.

A release has a ClusterClass with two templates, and addons in stages: four charts of six objects each. Values of two
of the charts differ for each cluster; those of the other two are the same everywhere. Only the first chart differs from
one version to the next.
"""

from __future__ import annotations

from pathlib import Path

from hortus.domains.stacks.capi import CLUSTERS
from hortus.domains.stacks.samples import FOLDER as SAMPLE
from hortus.domains.stacks.types import CLUSTER_STACKS, STACK_POLICIES
from hortus.engine.rollouts.types import ROLLOUT_POLICIES
from hortus.kube import yaml
from hortus.kube.objects import Object
from hortus.render.archive import Tree, pack_tgz

HOME = "stacks"
PROVIDER = "docker"
KUBERNETES = "v1.34.1"
MINOR = "1-34"
NEXT_KUBERNETES = "v1.35.0"
NEXT_MINOR = "1-35"
CHARTS = ("cni", "ccm", "csi", "metrics-server")
OBJECTS = 6
"""Objects of one chart."""
VERSIONS = 4
"""Versions of each stack, as far as the number of releases allows."""
RING = "bench.example.org/ring"
RINGS = ("canary", "early", "late")
V1BETA1 = CLUSTERS["v1beta1"]
_OF_CLUSTERS = CHARTS[:2]

_VALUES = "values: |\n  cluster: {{ .Cluster.metadata.name }}\n  host: {{ .Cluster.spec.controlPlaneEndpoint.host }}\n"
_TEMPLATE = """\
{{- $name := .Chart.Name -}}
apiVersion: v1
kind: ServiceAccount
metadata: {name: {{ $name }}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: {{ $name }}}
rules:
  - {apiGroups: [""], resources: [nodes, pods], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: {{ $name }}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: {{ $name }}}
subjects:
  - {kind: ServiceAccount, name: {{ $name }}, namespace: kube-system}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $name }}}
data:
  cluster: {{ .Values.cluster | quote }}
  host: {{ .Values.host | quote }}
---
apiVersion: v1
kind: Service
metadata: {name: {{ $name }}}
spec:
  selector: {app: {{ $name }}}
  ports: [{name: metrics, port: 9100, protocol: TCP}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ $name }}}
spec:
  replicas: 1
  selector:
    matchLabels: {app: {{ $name }}}
  template:
    metadata:
      labels: {app: {{ $name }}}
    spec:
      serviceAccountName: {{ $name }}
      containers:
        - name: main
          image: registry.example.org/{{ $name }}:{{ .Values.version }}
"""


def stack_of(number: int) -> str:
    """The name of a stack."""
    return f"s{number}"


def releases_of(releases: int) -> dict[str, list[str]]:
    """So many releases: the versions of each stack."""
    found: dict[str, list[str]] = {}
    for number in range(releases):
        found.setdefault(stack_of(number // VERSIONS), []).append(f"v{number % VERSIONS + 1}")
    return found


def tag_of(stack: str, version: str, minor: str = MINOR) -> str:
    """The tag of a release, which is the name of its class too."""
    return f"{PROVIDER}-{stack}-{minor}-{version}"


def write_releases(folder: Path, releases: int) -> None:
    """The files of all releases, a folder each, and of one for the next Kubernetes minor."""
    for stack, versions in releases_of(releases).items():
        for version in versions:
            _write(folder / tag_of(stack, version), _files(stack, version, MINOR, KUBERNETES))
    upgraded = stack_of(0)
    _write(folder / tag_of(upgraded, "v1", NEXT_MINOR), _files(upgraded, "v1", NEXT_MINOR, NEXT_KUBERNETES))


def _write(place: Path, files: dict[str, bytes]) -> None:
    place.mkdir(parents=True)
    for name, data in files.items():
        (place / name).write_bytes(data)


def _files(stack: str, version: str, minor: str, kubernetes: str) -> dict[str, bytes]:
    stem = f"{PROVIDER}-{stack}-{minor}"
    versions = {"clusterStack": version, "kubernetes": kubernetes, "components": {"clusterAddon": version}}
    stages = [{"name": name, "action": "apply"} for name in CHARTS]
    hooks = dict.fromkeys(("AfterControlPlaneInitialized", "BeforeClusterUpgrade"), stages)
    config = {
        "apiVersion": "clusteraddonconfig.x-k8s.io/v1alpha1",
        "clusterAddonVersion": "clusteraddons.clusterstack.x-k8s.io/v1alpha1",
        "addonStages": hooks,
    }
    class_chart = {
        "c/Chart.yaml": _chart(f"{stem}-cluster-class", version),
        "c/templates/class.yaml": (SAMPLE / "cluster-class/templates/cluster-class.yaml").read_bytes(),
    }
    addons = {path: data for name in CHARTS for path, data in _addon(name, version).items()}
    return {
        "metadata.yaml": yaml.dump({"versions": versions}).encode(),
        "clusteraddon.yaml": yaml.dump(config).encode(),
        f"{stem}-cluster-class-{version}.tgz": pack_tgz(Tree(class_chart)),
        f"{stem}-cluster-addon-{version}.tgz": pack_tgz(Tree(addons)),
    }


def _addon(name: str, version: str) -> dict[str, bytes]:
    values = {"version": version if name == CHARTS[0] else "v1", "cluster": "", "host": ""}
    found = {
        f"{name}/Chart.yaml": _chart(name, values["version"]),
        f"{name}/values.yaml": yaml.dump(values).encode(),
        f"{name}/templates/all.yaml": _TEMPLATE.encode(),
    }
    return found | ({f"{name}/overwrite.yaml": _VALUES.encode()} if name in _OF_CLUSTERS else {})


def _chart(name: str, version: str) -> bytes:
    return yaml.dump({"apiVersion": "v2", "name": name, "version": version}).encode()


# Objects.


def stack(name: str, versions: list[str], minor: str = MINOR) -> Object:
    """A ClusterStack that lists its versions and subscribes to the latest."""
    spec = {
        "provider": PROVIDER,
        "name": name,
        "kubernetesVersion": minor.replace("-", "."),
        "noProvider": True,
        "versions": versions,
    }
    title = name if minor == MINOR else f"{name}-{minor}"
    return _object(CLUSTER_STACKS.api_version, CLUSTER_STACKS.kind, title, spec)


def approval(name: str, versions: list[str]) -> Object:
    """The StackPolicy of a stack."""
    spec = {"provider": PROVIDER, "name": name, "versions": versions}
    return _object(STACK_POLICIES.api_version, STACK_POLICIES.kind, name, spec)


def cluster(name: str, class_name: str) -> Object:
    """A Cluster of a class."""
    topology = {"class": class_name, "version": KUBERNETES}
    network = {"pods": {"cidrBlocks": ["192.168.0.0/16"]}}
    spec = {"topology": topology, "clusterNetwork": network}
    return _object(V1BETA1.api_version, V1BETA1.kind, name, spec)


def waves(concurrency: int) -> Object:
    """A RolloutPolicy with three stages."""
    stages = [
        {"name": ring, "clusters": {"matchLabels": {RING: ring}}, "maxConcurrency": concurrency, "maxFailures": "1%"}
        for ring in RINGS
    ]
    made = _object(
        ROLLOUT_POLICIES.api_version,
        ROLLOUT_POLICIES.kind,
        "stacks",
        {"changes": [{"kind": "cluster-stack"}], "stages": stages},
    )
    made["metadata"]["namespace"] = "fleet"
    return made


def ring_of(number: int) -> str:
    """One of a hundred clusters is a canary, one of ten is early."""
    return RINGS[0] if number % 100 == 0 else RINGS[1] if number % 10 == 1 else RINGS[2]


def _object(version: str, kind: str, name: str, spec: Object) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": HOME}, "spec": spec}
