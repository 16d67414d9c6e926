"""Scenarios that any Kubernetes API server must pass: the embedded one, and the original.

The embedded one runs over SQLite, as `hortus up` does: the contract of tests/apiserver/store holds the stores to one
behaviour. `make soak` runs all scenarios over the other stores. Scenarios about history itself, what is listed, paged
and watched of the past, run over each store always: they ask for `EVERY_STORE`.

A scenario speaks HTTP only, keeps to a namespace of its own and names what it makes so that scenarios do not meet.

`differs(entry)` marks one that the original fails: `entry` begins an item of docs/apiserver-limits.md. Such a scenario
still runs against the original and must fail there, so that no mark outlives its difference. What went over the wire is
compared too: see transcripts.py.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import AsyncIterator, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.apiserver.store.etcdserver import find_etcd, free_port, running_etcd
from tests.apiserver.wire import connected
from tests.conformance.api.transcripts import RecordedWire, Transcript, verify
from tests.oracles.controlplane import RealServer, find_assets, running_control_plane, why_none

from hortus.apiserver.store import EtcdBackend
from hortus.testing.apiserver import TestServer, started_apiserver

Server = TestServer | RealServer

_NUMBERS = itertools.count()
_HERE = Path(__file__).parent
_LIMITS = Path(__file__).resolve().parents[3] / "docs" / "apiserver-limits.md"
REAL = pytest.param("real", marks=pytest.mark.real_apiserver)
_OTHERS = ["memory", *(["etcd"] if find_etcd() else [])]
_ORIGINAL = [REAL] if find_assets() else []
VARIANTS = ["sqlite", *(pytest.param(store, marks=pytest.mark.soak) for store in _OTHERS), *_ORIGINAL]
"""The variants that run here; test_variants.py reports the missing ones."""
EVERY_STORE = pytest.mark.parametrize("server", ["sqlite", *_OTHERS, *_ORIGINAL], indirect=True, scope="module")
"""The mark of modules that run over each store always."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    entries = _LIMITS.read_text()
    for item in (item for item in items if item.path.parent == _HERE):
        for mark in (*item.iter_markers("differs"), *item.iter_markers("allows")):
            entry = mark.args[0]
            assert f"\n- {entry}" in entries, f"{item.nodeid}: docs/apiserver-limits.md has no entry {entry!r}"
            if mark.name == "differs" and _is_original(item):
                item.add_marker(pytest.mark.xfail(reason=entry, strict=True))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Generator[None, object, object]:
    """A scenario that passed has said what the original said."""
    result = yield
    transcript = pyfuncitem.funcargs.get("transcript")
    if isinstance(transcript, Transcript) and transcript and pyfuncitem.get_closest_marker("differs") is None:
        allowed = [pattern for mark in pyfuncitem.iter_markers("allows") for pattern in mark.args[1:]]
        module = pyfuncitem.path.stem.removeprefix("test_")
        verify(module, _key(pyfuncitem), transcript, is_original=_is_original(pyfuncitem), allowed=allowed)
    return result


def _is_original(item: pytest.Item) -> bool:
    return item.get_closest_marker("real_apiserver") is not None


def _key(item: pytest.Item) -> str:
    """The scenario's name without the server's, the same for all variants."""
    name, _, parameters = item.name.removesuffix("]").partition("[")
    left = [part for part in parameters.split("-") if part not in ("memory", "sqlite", "etcd", "real")]
    return f"{name}[{'-'.join(left)}]" if left else name


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    """A real kube-apiserver."""
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    with running_control_plane(assets, tmp_path_factory.mktemp("control-plane")) as running:
        yield running


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an etcd."""
    binary = find_etcd()
    if binary is None:
        pytest.skip("no etcd here: put it on the PATH (Debian: etcd-server) or name it in HORTUS_ETCD")
    port = free_port()
    with running_etcd(binary, tmp_path_factory.mktemp("etcd"), port):
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="module", params=VARIANTS)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    if request.param == "real":
        yield request.getfixturevalue("original")
        return
    with ExitStack() as stack:
        if request.param == "etcd":
            backend = EtcdBackend([request.getfixturevalue("etcd")], root=f"/scenarios-{next(_NUMBERS)}/")
            yield stack.enter_context(started_apiserver(backend=backend))
        else:
            yield stack.enter_context(started_apiserver(store=request.param))


@pytest.fixture
def transcript() -> Transcript:
    return Transcript()


@pytest.fixture
async def wire(server: Server, transcript: Transcript) -> AsyncIterator[RecordedWire]:
    async with connected(server.url, server.token, server.tls()) as found:
        yield RecordedWire(found, transcript)


@pytest.fixture
def slug(request: pytest.FixtureRequest) -> str:
    """A short name that belongs to the scenario, the same against every server."""
    return hashlib.blake2b(_key(request.node).encode(), digest_size=4).hexdigest()


@pytest.fixture
async def namespace(wire: RecordedWire, slug: str) -> str:
    name = f"s-{slug}"
    with wire.unrecorded():
        created = await wire.post("/api/v1/namespaces", {"metadata": {"name": name}})
    assert created.code == 201
    return name


@pytest.fixture
def configmaps(namespace: str) -> str:
    """The collection of config maps in the scenario's namespace."""
    return f"/api/v1/namespaces/{namespace}/configmaps"


@pytest.fixture
def controllers(server: Server) -> None:
    """Skips a scenario that needs controllers, which an envtest folder does not have."""
    if isinstance(server, RealServer) and not server.has_controllers:
        pytest.skip("no kube-controller-manager next to the real kube-apiserver: run `make oracles` for one")
