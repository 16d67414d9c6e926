"""One management cluster that teams share: Hortus with all domains at work, its garden and members, and an author.

The author may write one kind in one namespace. Everything that is worth an attack lies around: roles, Secrets, kinds of
other teams, a member and the operator's own rollout. `DeedRecorder` keeps what Hortus does, and as whom.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from tests.domains.definitions import define
from tests.domains.rollouts.world import APPLIANCE_CRD, APPLIANCE_KIND, APPLIANCES
from tests.simulation.garden import started_garden

from hortus.cli.flags import FLAGS
from hortus.cli.install import contents
from hortus.cli.program import program
from hortus.domains.clusters.local import local_setup
from hortus.domains.inventory.types import CLUSTER_PROFILES, PLUGIN_EXTENSION, PROVIDER, SourceLabel
from hortus.domains.rollouts.approval import POLICIES
from hortus.engine import Manager
from hortus.engine.deputies import ACCOUNT
from hortus.engine.flags import FlagSet
from hortus.engine.rollouts.types import CHANGE_KINDS, ROLLOUT_POLICIES, ROLLOUTS, WANTS
from hortus.kube import Client, ConnectionSettings, Impersonation, Resource, yaml
from hortus.kube.errors import ApiError, NotFound
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer
from hortus.testing.deeds import Deed, DeedRecorder
from hortus.testing.specs import Impossible, SpecGenerator

TEAM, FLEET, HOME, OTHER, MEMBER = "team", "fleet", "kcp-system", "other", "member"
ETCD = "openshift-etcd"
PROD = "prod"
"""The operator's cluster in the inventory, by a labelled Secret."""
MARK = "bm90LWZvci10aGUtYXV0aG9y"
"""A value of the Secrets of others, in Base64, that must not turn up elsewhere."""
NAMESPACES = Resource("", "v1", "namespaces", "Namespace", namespaced=False)
CRDS = Resource("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition", namespaced=False)
SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
_RBAC = "rbac.authorization.k8s.io"
ROLES = Resource(_RBAC, "v1", "roles", "Role")
BINDINGS = Resource(_RBAC, "v1", "rolebindings", "RoleBinding")
CLUSTER_ROLES = Resource(_RBAC, "v1", "clusterroles", "ClusterRole", namespaced=False)
CLUSTER_BINDINGS = Resource(_RBAC, "v1", "clusterrolebindings", "ClusterRoleBinding", namespaced=False)
APPLIANCE_SPEC: Object = {
    "type": "object",
    "required": ["product", "version"],
    "properties": {"product": {"enum": ["press"]}, "version": {"enum": ["1", "9"]}},
}
QUIET, LONGEST = 0.6, 8.0
"""Seconds without a new sort of request after which a round is over, and the longest round."""

SAMPLES: Mapping[tuple[str, str], Object] = {
    ("rollouts", "spec"): {
        "change": {"kind": "appliance", "subject": "press", "to": "2"},
        "execute": "Patch",
        "policy": {"stages": [{"name": "all"}]},
    },
    ("agents", "spec"): {
        "agent": {"endpointHost": "example.org", "endpointPort": "443", "key": "k", "keysSecret": "victim"},
        "cluster": {"name": "mine"},
        "zone": {"name": "mine"},
        "openshift": True,
    },
    ("agentconfigurations", "spec"): {
        "clusterSelector": {},
        "template": {"agent": {"endpointHost": "example.org", "endpointPort": "443", "keysSecret": "victim"}},
    },
    ("gardenerclusters", "spec"): {
        "shoot": {"name": "mine"},
        "kubeconfig": {"secret": {"name": f"kubeconfig-{PROD}", "namespace": HOME, "key": "config"}},
    },
    ("changekinds", "spec"): {
        "resource": {"group": "", "version": "v1", "resource": "resourcequotas"},
        "cluster": "self.metadata.name",
        "subject": "'mine'",
        "version": "''",
        "succeeded": "false",
    },
}
"""Specs that work, from which authors of these kinds begin."""
POWERFUL = ("cluster-admin", "view", "edit", "system:node", "hortus", "default", "mine", "instana-agent")
WORDS: Mapping[str, Sequence[str]] = {
    r"changes?\.kind$": ("appliance",),
    r"subject": ("press", "*"),
    r"policyname": ("strict", "lax"),
    r"namespace": (OTHER, HOME, FLEET, "kube-system", TEAM, "instana-agent", "garden-demo"),
    r"secret|keyssecret": ("victim", "kubeconfig-member", "kubeconfig-prod", "mine", "etcd-client", "distributed"),
    r"profile|cluster(ref)?\.name|clustername|runtime": (MEMBER, "mine", "*"),
    r"kind$": ("Secret", "ClusterRole", "Cluster", "Shoot", "ConfigMap", "Deployment"),
    r"apiversion$": ("v1", "rbac.authorization.k8s.io/v1", "cluster.x-k8s.io/v1beta1"),
    r"url|endpoint|server|host|registry|repo|address": ("https://127.0.0.1:1", "127.0.0.1:1/x/y", "http://[::1]:1"),
    r"version$|channel$|\.to$|\.from$": ("1.0.0", "2", "9", "v1", "fast", "regular", "0.1"),
    r"succeeded|failed$": ("true", "false"),
    r"\.cluster$|\.subject$|\.version$|\.message$|\.wanted$": ("self.metadata.name", "'9'", "string(self)", "'mine'"),
    r"patch$": ("{'metadata': {'labels': {'by': 'author'}}}", "{'data': {'key': 'b3du'}}"),
    r"duration|deadline|time|ttl|lifetime|period": ("1h", "0s", "10s"),
    r"cpu|memory|quantity|request|limit|size": ("1", "100Mi"),
    r"cidr": ("0.0.0.0/0", "10.0.0.0/8"),
    r"": (*POWERFUL, "*", "kube-system", "secrets", "system:masters", "50%", "1.0", "openstack", "0"),
}


_PLACE: Object = {"namespace": HOME, "name": f"kubeconfig-{MEMBER}", "key": "config"}
_WAY_IN: Object = {
    "accessProviders": [
        {
            "name": PROVIDER,
            "cluster": {
                "server": "https://example.org",
                "extensions": [{"name": PLUGIN_EXTENSION, "extension": {"secret": _PLACE}}],
            },
        }
    ]
}


class SharedWorld:
    """The clusters, and the one program on them."""

    def __init__(
        self,
        server: TestServer,
        client: Client,
        garden: Client,
        member: Client,
        recorder: DeedRecorder,
        folder: Path,
    ) -> None:
        self.server = server
        self.garden = garden
        self.member = member
        self.before: frozenset[Deed] = frozenset()
        """The deeds of a program that no author has asked for anything."""
        self.client = client
        """The administrator of the management cluster."""
        self.recorder = recorder
        self._folder = folder
        self._written: set[str] = set()
        """The uids of what authors created."""

    @asynccontextmanager
    async def hortus(self, *further: str) -> AsyncIterator[Manager]:
        """All controllers; yields when they have nothing left to do."""
        flags = [
            f"--kubeconfig={self.server.kubeconfig_for('root')}",
            f"--gardener-kubeconfig-path={self.server.kubeconfig_for('garden')}",
            "--gardener-project-name=demo",
            "--gardener-ratelimiter-qps=1000",
            "--gardener-ratelimiter-burst=1000",
            "--watch-namespace=",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            "--hook-bind-address=0",
            "--kyma-skr-listener-bind-address=0",
            "--allow-local-clusters",
            _converter(self._folder),
            "--audit-log-mandatory=false",
            f"--release-dir={self._folder / 'releases'}",
            "--local",
            "--oci-registry-host=registry.invalid",
            *(f"--{name}" for name in SERVED),
            *further,
        ]
        async with program(FlagSet(FLAGS).parse(flags), grace=0.0) as manager:
            serving = asyncio.create_task(self._serve_missing(manager))
            async with manager.running():
                serving.cancel()
                self.before = await self.settled()
                yield manager

    async def _serve_missing(self, manager: Manager) -> None:
        """Installs the kinds of other programs that Hortus follows, such as Cluster API's, with any content."""
        while True:
            for stalled in manager.stalled:
                for cluster in (self.client, self.garden):
                    if stalled.is_missing:
                        await cluster.apply(CRDS, _any_content(stalled.resource), field_manager="operator")
            await asyncio.sleep(0.05)  # nothing announces a kind that is missing

    async def settled(self) -> frozenset[Deed]:
        """Returns the deeds since the last call, once no new sort of them appears."""
        known, still = -1, 0.0
        for _ in range(int(LONGEST / 0.1)):
            count = len(self.recorder)
            still = still + 0.1 if count == known else 0.0
            known = count
            if still >= QUIET:
                break
            await asyncio.sleep(0.1)  # no condition says that nothing follows
        return self.recorder.take()

    @asynccontextmanager
    async def author(self, resource: Resource, namespace: str) -> AsyncIterator[Client]:
        """Somebody who may write this kind in this namespace, and nothing else."""
        rule = {"apiGroups": [resource.group], "resources": [resource.plural], "verbs": ["*"]}
        kinds = (ROLES, BINDINGS) if namespace else (CLUSTER_ROLES, CLUSTER_BINDINGS)
        metadata = {"name": "author", **({"namespace": namespace} if namespace else {})}
        # Without `*`, which would be the verb `approve`, too.
        rule["verbs"] = ["create", "get", "list", "watch", "update", "patch", "delete"]
        subject = {"apiGroup": ROLES.group, "kind": "User", "name": "author"}
        reference = {"apiGroup": ROLES.group, "kind": kinds[0].kind, "name": "author"}
        await self.client.create(kinds[0], {"metadata": metadata, "rules": [rule]})
        await self.client.create(kinds[1], {"metadata": metadata, "subjects": [subject], "roleRef": reference})
        try:
            yield self.client.acting_as(Impersonation(user="author"))
        finally:
            for kind in kinds:
                await self.client.delete(kind, "author", namespace)

    async def write(self, author: Client, resource: Resource, namespace: str, random: Random, count: int) -> int:
        """Has the author create objects with random specs; returns the number that the API server took."""
        definition = crd(contents.KINDS[resource]) if resource in contents.KINDS else APPLIANCE_CRD
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        generator, taken = SpecGenerator(WORDS, random), 0
        for number in range(count):
            obj: Object = {"apiVersion": resource.api_version, "kind": resource.kind}
            name = random.choice((*POWERFUL, "victim", MEMBER)) if number < count // 2 else f"mine-{number}"
            obj["metadata"] = {"name": name.replace(":", "."), "namespace": namespace, **_metadata(random)}
            for part, field in schema.get("properties", {"spec": APPLIANCE_SPEC}).items():
                if part not in ("apiVersion", "kind", "metadata", "status"):
                    with suppress(Impossible):
                        obj[part] = _mixed(_sample(resource, part, random), generator.make(field, part), random)
            with suppress(ApiError):
                self._written.add((await author.create(resource, obj))["metadata"]["uid"])
                taken += 1
        return taken

    async def clear(self, author: Client, resource: Resource, namespace: str) -> None:
        """Has the author delete the objects that he created."""
        for obj in (await author.list(resource, namespace)).items:
            if obj["metadata"]["uid"] in self._written:
                with suppress(ApiError):
                    await author.delete(resource, obj["metadata"]["name"], namespace)

    async def victims(self) -> Mapping[str, object]:
        """The parts of others' objects that no author may have changed, by the names of these objects."""
        found: dict[str, object] = {}
        wide = ((CLUSTER_ROLES, "rules"), (CLUSTER_BINDINGS, "subjects"))
        for cluster, resource, part in (
            *((cluster, *one) for cluster in (self.client, self.member) for one in wide),
            (self.client, APPLIANCES, "spec"),
        ):
            for obj in (await cluster.list(resource)).items:
                metadata = obj["metadata"]
                if metadata["name"] != "author" and metadata.get("namespace") not in (TEAM, FLEET):
                    place = "the member's " if cluster is self.member else ""
                    found[f"{place}{resource.plural} {metadata['name']}"] = obj.get(part)
        for obj in (await self.client.list(CLUSTER_PROFILES, FLEET)).items:
            metadata = obj["metadata"]
            if metadata["name"] in (MEMBER, PROD):
                way = (obj.get("status") or {}).get("accessProviders")
                kept = [metadata[one] for one in ("uid", "labels", "annotations") if one in metadata]
                found[f"the profile of {metadata['name']}"] = [*kept, way]
        found["the operator's rollout"] = any(
            one["metadata"]["name"] == "operators-1" and (one.get("status") or {}).get("phase") in ("Paused", None)
            for one in (await self.client.list(ROLLOUTS, FLEET)).items
        )
        return found

    async def leaks(self) -> Sequence[str]:
        """The objects besides the Secrets of others that hold the value of these."""
        found = []
        for resource in (SECRETS, CONFIG_MAPS, *contents.KINDS):
            for cluster in (self.client, self.member):
                with suppress(NotFound):
                    for obj in (await cluster.list(resource)).items:
                        name = obj["metadata"]["name"]
                        original = name == "victim" or obj["metadata"].get("namespace") == ETCD
                        if MARK in str(obj) and (cluster is self.member or resource is not SECRETS or not original):
                            found.append(f"{resource.plural} {name}")
        return found


def _sample(resource: Resource, part: str, random: Random) -> Any:
    found = SAMPLES.get((resource.plural, part))
    # Terms need a verb that the author lacks.
    drop = "policy" if random.random() < 0.5 else ""
    return None if found is None else {name: value for name, value in found.items() if name != drop}


def _mixed(sample: Any, made: Any, random: Random) -> Any:
    """A sample with some of its fields made up, or left as they are with some more."""
    if not isinstance(sample, dict) or not isinstance(made, dict) or random.random() < 0.2:
        return made if sample is None or random.random() < 0.5 else sample
    more = {name: value for name, value in made.items() if name not in sample and random.random() < 0.2}
    return {**more, **{name: _mixed(value, made.get(name, value), random) for name, value in sample.items()}}


def _metadata(random: Random) -> Object:
    labels = {
        "operator.kyma-project.io/kyma-name": random.choice((MEMBER, "mine")),
        "kyma-project.io/shoot-name": random.choice((MEMBER, "mine")),
        "cluster.x-k8s.io/cluster-name": MEMBER,
        "ring": "canary",
    }
    return {
        "labels": {key: value for key, value in labels.items() if random.random() < 0.5},
        "annotations": {f"{WANTS}appliance": random.choice(("9", "2"))},
    }


SERVED = (
    "cluster-access",
    "agents",
    "gardenlets",
    "inventory",
    "leftovers",
    "modules",
    "module-configurations",
    "rollouts",
    "stacks",
    "structured-auth-enabled",
)


def _converter(folder: Path) -> str:
    """The flag with the configuration of Runtimes, as `hortus up` writes it."""
    setup = local_setup(folder, "demo")
    for path, content in setup.files.items():
        path.write_bytes(content)
    return next(flag for flag in setup.flags if flag.startswith("--converter-config-filepath"))


def _any_content(resource: Resource) -> Object:
    names = {"plural": resource.plural, "kind": resource.kind, "singular": resource.kind.lower()}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": resource.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    scope = "Namespaced" if resource.namespaced else "Cluster"
    spec = {"group": resource.group, "names": names, "scope": scope, "versions": [version]}
    return {"metadata": {"name": f"{resource.plural}.{resource.group}"}, "spec": spec}


@contextmanager
def started(folder: Path) -> Iterator[tuple[TestServer, DeedRecorder]]:
    """The API server, with a recorder in front of the garden."""
    with started_garden(GardenSettings(time_factor=100.0)) as server:
        server.create_cluster(MEMBER)
        recorder = DeedRecorder("hortus", server.server._handler.interceptor)
        server.server.intercept(recorder)
        yield server, recorder


@asynccontextmanager
async def shared_world(folder: Path, *, policies: bool = True) -> AsyncIterator[SharedWorld]:
    """The clusters with everything in them that an author must not get; nothing works there yet.

    Admission policies are installed with `policies`.
    """
    with started(folder) as (server, recorder):
        await define(server, "root", *contents.KINDS.values(), APPLIANCE_CRD)
        settings = ConnectionSettings(user_agent="test")
        async with (
            Client.from_kubeconfig(server.kubeconfig, settings=settings) as client,
            Client.from_kubeconfig(server.kubeconfig_for("garden"), settings=settings) as garden,
            Client.from_kubeconfig(server.kubeconfig_for(MEMBER), settings=settings) as member,
        ):
            world = SharedWorld(server, client, garden, member, recorder, folder)
            for resource, obj in _victims(server):
                await client.apply(resource, obj, field_manager="operator", force=True)
            for obj in POLICIES if policies else ():
                await client.apply(resource_of_policy(obj), obj, field_manager="operator")
            await client.patch(CLUSTER_PROFILES, MEMBER, {"status": _WAY_IN}, FLEET, subresource="status")
            yield world


def resource_of_policy(obj: Object) -> Resource:
    """The resource of an admission policy or of its binding."""
    kind = str(obj["kind"])
    plural = f"{kind.removesuffix('y').lower()}ies" if kind.endswith("y") else f"{kind.lower()}s"
    return Resource("admissionregistration.k8s.io", "v1", plural, kind, namespaced=False)


def _victims(server: TestServer) -> Iterator[tuple[Resource, Object]]:
    for name in (TEAM, FLEET, HOME, OTHER, "instana-agent", "kube-system", "garden", "cluster", ETCD):
        yield NAMESPACES, {"metadata": {"name": name}}
    for namespace in (OTHER, HOME, FLEET, TEAM, "kube-system"):
        yield SECRETS, {"metadata": {"name": "victim", "namespace": namespace}, "data": {"key": MARK}}
    config = base64.b64encode(yaml.dump(server.kubeconfig_dict(MEMBER)).encode()).decode()
    labels = {
        "operator.kyma-project.io/kyma-name": MEMBER,
        "operator.kyma-project.io/managed-by": "infrastructure-manager",
    }
    etcd = {"metadata": {"name": "etcd-client", "namespace": ETCD}, "data": {"tls.crt": MARK, "tls.key": MARK}}
    yield SECRETS, etcd
    bundle = {"metadata": {"name": "etcd-ca-bundle", "namespace": ETCD}, "data": {"ca-bundle.crt": "public"}}
    yield CONFIG_MAPS, bundle
    metadata = {"name": f"kubeconfig-{PROD}", "namespace": HOME, "labels": {SourceLabel.KUBECONFIG: "true"}}
    yield SECRETS, {"metadata": metadata, "data": {"config": config}}
    for namespace in (HOME, TEAM):
        metadata = {"name": f"kubeconfig-{MEMBER}", "namespace": namespace, "labels": labels}
        yield SECRETS, {"metadata": metadata, "data": {"config": config}}
    yield (
        SECRETS,
        {"metadata": {"name": f"{MEMBER}-kubeconfig", "namespace": TEAM}, "data": {"value": config}},
    )
    profile: dict[str, Any] = {
        "metadata": {"name": MEMBER, "namespace": FLEET, "labels": {"ring": "canary"}},
        "spec": {"clusterManager": {"name": "operator"}},
    }
    yield CLUSTER_PROFILES, profile
    yield CHANGE_KINDS, APPLIANCE_KIND
    terms = {"stages": [{"name": "all", "approval": "Before"}]}
    yield (
        ROLLOUT_POLICIES,
        {"metadata": {"name": "strict", "namespace": FLEET}, "spec": {"changes": [{"kind": "appliance"}], **terms}},
    )
    change = {"kind": "appliance", "subject": "press", "to": "2"}
    yield (
        ROLLOUTS,
        {
            "metadata": {"name": "operators-1", "namespace": FLEET},
            "spec": {"change": change, "policyName": "strict", "policy": terms, "state": "Pause", "execute": "Patch"},
        },
    )
    yield APPLIANCES, {"metadata": {"name": MEMBER, "namespace": OTHER}, "spec": {"product": "press", "version": "1"}}
    rule = {"apiGroups": [APPLIANCES.group], "resources": [APPLIANCES.plural], "verbs": ["list", "watch", "patch"]}
    yield CLUSTER_ROLES, {"metadata": {"name": "sets-appliances"}, "rules": [rule]}
    reference = {"apiGroup": ROLES.group, "kind": "ClusterRole", "name": "sets-appliances"}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": FLEET}
    yield (
        CLUSTER_BINDINGS,
        {"metadata": {"name": "sets-appliances"}, "roleRef": reference, "subjects": [subject]},
    )
