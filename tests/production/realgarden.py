"""A garden for tests of `hortus run`: gardener-apiserver itself, and the simulation's scheduler and gardenlet.

Both work through the API alone, so that what `hortus run` sends is judged by Gardener's own code. Each workload cluster
is an embedded API server with a port of its own.
"""

from __future__ import annotations

import base64
import ssl
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from tests.apiserver.store.etcdserver import free_port
from tests.oracles.extension import RunningExtension
from tests.oracles.garden import running_garden
from tests.production.test_running import Process, running
from tests.scenarios.running import kubectl
from tests.simulation import garden as garden_tools
from tests.simulation.garden import NAMESPACE, simulated

from hortus.apiserver import ApiServerSettings
from hortus.apiserver.authn.subjects import name_of
from hortus.domains.clusters.local import local_setup
from hortus.domains.clusters.types import Runtime
from hortus.domains.credentials.types import GardenerCluster
from hortus.kube import Client, yaml
from hortus.kube.objects import Object
from hortus.schema import crd
from hortus.simulation.garden import composition, content
from hortus.simulation.garden.gardenlet import ShootGardenlet
from hortus.simulation.garden.kinds import CREDENTIALS_BINDINGS
from hortus.simulation.garden.profiles import PROVIDERS
from hortus.simulation.garden.workload import WorkloadClusters
from hortus.simulation.settings import GardenSettings
from hortus.testing.apiserver import TestServer, started_apiserver

SETTINGS: Final = GardenSettings(time_factor=50.0, sync_period=1e6, nodes=False)
EXAMPLES: Final = Path(__file__).parents[2] / "examples" / "runtimes"
CLUSTER: Final = "garden"
SYSTEM: Final = "kcp-system"
EXTENSIONS: Final = (
    *("registry-cache", "shoot-auditlog-service", "shoot-cert-service", "shoot-dns-service", "shoot-flux"),
    *("shoot-networking-filter", "shoot-oidc-service", "acl", "audit", "registry-mirror"),
)
"""Types of extensions that the examples ask for."""


_servers: Final[dict[str, TestServer]] = {}
"""The API servers of workload clusters by technical ID. Each has a port of its own, since the kubeconfigs that Gardener
makes have the host and the port of an address, and no path."""


class _OwnServers(WorkloadClusters):
    """Workload clusters of which each is a server: its cluster `root`."""

    async def ensure(self, name: str, shoot: Object) -> bool:
        async with Client.from_kubeconfig(_servers[name].kubeconfig) as client:
            await _Contents(client, with_nodes=False).ensure("root", shoot)
        return True

    async def remove(self, name: str) -> None:
        """Leaves the server: it ends with the test."""


class _Contents(WorkloadClusters):
    async def _make(self, name: str, shoot: Object) -> bool:
        return False


class _OwnPorts(ShootGardenlet):
    def _identity(self, shoot: Object) -> dict[str, Any]:
        found = super()._identity(shoot)
        url = _servers[found["technicalID"]].url
        names = [one["name"] for one in found["advertisedAddresses"]]
        return {**found, "advertisedAddresses": [{"name": name, "url": url} for name in names]}


class _GardenCluster(NamedTuple):
    """The logical cluster of the garden, as the programs of `tests.oracles` know servers."""

    server: TestServer

    @property
    def url(self) -> str:
        return self.server.cluster_url(CLUSTER)

    @property
    def token(self) -> str:
        return self.server.token_everywhere

    @property
    def kubeconfig(self) -> Path:
        return self.server.kubeconfig_for(CLUSTER)

    def tls(self) -> ssl.SSLContext:
        return self.server.tls()


class RealGarden:
    def __init__(self, server: TestServer, program: RunningExtension, folder: Path, stack: ExitStack):
        self.server = server
        self._stack = stack
        self.program = program
        self.folder = folder
        self.management = server.kubeconfig_for("root")
        self.kubeconfig = server.kubeconfig_for(CLUSTER)
        self._authority, self._key = _authority()
        self._trusted = folder / "client-ca.crt"
        self._trusted.write_bytes(self._authority)

    def kubectl(self, *words: str, stdin: str = "", garden: bool = True) -> str:
        done = kubectl(self.kubeconfig if garden else self.management, *words, stdin=stdin)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def read(self, *words: str, garden: bool = False) -> Object:
        found: Object = orjson.loads(self.kubectl("get", *words, "-o", "json", garden=garden))
        return found

    def fill(self) -> None:
        """Creates the content of the simulated garden, with a binding for each provider, as Gardener wants them."""
        now = time.time()
        wanted: list[Object] = list(REGISTRATIONS)
        for wave in content.waves("demo", now):
            wanted += [obj for resource, obj in wave if resource is not CREDENTIALS_BINDINGS]
        wanted += [binding for provider in PROVIDERS for binding in _bindings(provider)]
        self.kubectl("apply", "--server-side", "-f", "-", stdin="---\n".join(map(yaml.dump, wanted)))
        for seed in content.seeds(now):  # their status is a write of its own
            status = orjson.dumps({"status": seed["status"]}).decode()
            self.kubectl(
                "patch", "seed", seed["metadata"]["name"], "--subresource=status", "--type=merge", "-p", status
            )

    def prepare(self, shoot: str) -> None:
        """Starts the API server of a workload cluster and hands its authorities to the garden, as gardenlet does."""
        settings, folder = ApiServerSettings(client_ca=self._trusted), self.folder / shoot
        folder.mkdir()
        cluster = self._stack.enter_context(started_apiserver(folder=folder, settings=settings))
        _servers[f"shoot--demo--{shoot}"] = cluster
        internal = {"ca.crt": _encoded(self._authority), "ca.key": _encoded(self._key)}
        objects = [
            _object("core.gardener.cloud/v1beta1", "InternalSecret", f"{shoot}.ca-client", data=internal),
            _object("v1", "ConfigMap", f"{shoot}.ca-cluster", data={"ca.crt": cluster.ca.decode()}),
        ]
        self.kubectl("apply", "--server-side", "-f", "-", stdin="---\n".join(map(yaml.dump, objects)))

    @contextmanager
    def hortus(self) -> Iterator[tuple[Process, str]]:
        """`hortus run`, and the address of its metrics."""
        setup = local_setup(self.folder, "demo")
        for path, text in setup.files.items():
            path.write_bytes(text)
        port = free_port()
        flags = (
            f"--kubeconfig={self.management}",
            f"--gardener-kubeconfig-path={self.kubeconfig}",
            "--gardener-project-name=demo",
            f"--metrics-bind-address=127.0.0.1:{port}",
            "--health-probe-bind-address=0",
            f"--watch-namespace={SYSTEM}",
            "--allow-local-clusters",
            "--zap-log-level=debug",
            *setup.flags,
        )
        with running(*flags) as process:
            process.says("started")
            yield process, f"http://127.0.0.1:{port}/metrics"


async def _leave(*_: Any, **__: Any) -> None:
    """Creates no content: it is there."""


def _encoded(pem: bytes) -> str:
    return base64.b64encode(pem).decode()


def _object(version: str, kind: str, name: str, **parts: Any) -> Object:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name, "namespace": NAMESPACE}, **parts}


def _authority() -> tuple[bytes, bytes]:
    """A new authority of RSA, the only kind that Gardener signs with: certificate and key in PEM."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
    name, now = name_of("kubernetes-client"), datetime.now(UTC)
    usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.BasicConstraints(True, None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM), pem


def _registration(name: str, kinds: Sequence[str], types: Iterable[str]) -> Object:
    """An extension of the garden: without one that serves a type, Gardener takes no object that asks for it."""
    resources = [{"kind": kind, "type": type_, "primary": True} for kind in kinds for type_ in types]
    return {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ControllerRegistration",
        "metadata": {"name": name},
        "spec": {"resources": resources},
    }


def _bindings(provider: str) -> Iterator[Object]:
    """Both kinds of binding, which a migration of credentials leads from one to the other."""
    of_provider, reference = {"provider": {"type": provider}}, {"name": "demo-credentials", "namespace": NAMESPACE}
    core, security = "core.gardener.cloud/v1beta1", "security.gardener.cloud/v1alpha1"
    yield _object(core, "SecretBinding", f"demo-{provider}", secretRef=reference, **of_provider)
    secret = {"apiVersion": "v1", "kind": "Secret", **reference}
    yield _object(security, "CredentialsBinding", f"demo-{provider}", credentialsRef=secret, **of_provider)


REGISTRATIONS: Final = (
    _registration("providers", ("BackupBucket", "BackupEntry", "ControlPlane", "Infrastructure", "Worker"), PROVIDERS),
    _registration("dns", ("DNSRecord",), ("aws-route53",)),
    _registration("systems", ("OperatingSystemConfig",), ("gardenlinux",)),
    _registration("networks", ("Network",), ("calico", "cilium")),
    _registration("extensions", ("Extension",), EXTENSIONS),
)


@contextmanager
def real_garden(folder: Path) -> Iterator[RealGarden]:
    """The garden with its content, and its scheduler and gardenlet at work."""
    with ExitStack() as stack, pytest.MonkeyPatch.context() as patched:
        patched.setattr(composition, "ShootGardenlet", _OwnPorts)
        patched.setattr(composition, "WorkloadClusters", _OwnServers)
        patched.setattr(garden_tools, "ensure_content", _leave)
        served = ApiServerSettings(local_webhooks=frozenset({CLUSTER}))
        server = stack.enter_context(started_apiserver(clusters=[CLUSTER], folder=folder, settings=served))
        program = stack.enter_context(running_garden(folder / "gardener", _GardenCluster(server)))
        found = RealGarden(server, program.extension, folder, stack)
        definitions = "---\n".join(yaml.dump(crd(kind)) for kind in (Runtime, GardenerCluster))
        found.kubectl("apply", "--server-side", "-f", "-", stdin=definitions, garden=False)
        found.kubectl("create", "namespace", SYSTEM, garden=False)
        found.fill()
        stack.enter_context(simulated(server, SETTINGS))
        yield found
