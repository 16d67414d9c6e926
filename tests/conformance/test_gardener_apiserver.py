"""gardener-apiserver behind the embedded API server, and behind a real one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import orjson
import pytest
from tests.apiserver.wire import Wire, connected
from tests.oracles.controlplane import find_assets, running_control_plane, why_none
from tests.oracles.garden import (
    CORE,
    NAMESPACE,
    RunningGarden,
    running_garden,
    setup,
    shoot,
)
from tests.oracles.programs import built_program, why_not

from hortus.testing.apiserver import started_apiserver

pytestmark = pytest.mark.soak
SHOOTS = f"{CORE}/namespaces/{NAMESPACE}/shoots"


@pytest.fixture(scope="module", params=["embedded", "real"])
def garden(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningGarden]:
    if built_program("gardenerapiserver") is None:
        pytest.skip(why_not("gardenerapiserver"))
    folder = tmp_path_factory.mktemp("garden")
    if request.param == "embedded":
        with started_apiserver(store="sqlite") as server, running_garden(folder / "garden", server) as running:
            yield running
        return
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    (folder / "real").mkdir()
    with running_control_plane(assets, folder / "real") as real, running_garden(folder / "garden", real) as running:
        yield running


@pytest.fixture
async def wire(garden: RunningGarden) -> AsyncIterator[Wire]:
    server = garden.server
    async with connected(server.url, server.token, server.tls()) as found:
        for collection, obj in setup():
            made = await found.post(collection, obj)
            assert made.code in (201, 409), made.body
        yield found


async def test_gardener_takes_judges_and_defaults_a_shoot(wire: Wire) -> None:
    created = await wire.post(SHOOTS, shoot("taken"))
    assert created.code == 201, created.body
    spec = created.body["spec"]
    assert spec["purpose"] == "evaluation"
    assert spec["provider"]["workers"][0]["machine"]["architecture"] == "amd64"
    assert created.body["metadata"]["annotations"]["gardener.cloud/created-by"] == "kubernetes-admin"
    refused = await wire.post(SHOOTS, shoot("refused", version="1.20.0"))
    assert refused.code in (403, 422), refused.body
    assert "1.20.0" in refused.message
    async with wire.watch(f"{SHOOTS}?watch=true&resourceVersion={created.body['metadata']['resourceVersion']}") as seen:
        changed = await wire.merge(f"{SHOOTS}/taken", {"metadata": {"labels": {"a": "b"}}})
        assert changed.code == 200, changed.body
        assert await seen.take(1) == [("MODIFIED", "taken")]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kubectl_works_with_shoots(garden: RunningGarden, wire: Wire, tmp_path: Path) -> None:
    def kubectl(*words: str, stdin: object = None) -> str:
        command = ["kubectl", f"--kubeconfig={garden.server.kubeconfig}", f"--cache-dir={tmp_path}", *words]
        text = None if stdin is None else orjson.dumps(stdin).decode()
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    space = f"--namespace={NAMESPACE}"
    assert kubectl("apply", "-f", "-", stdin=shoot("typed")) == "shoot.core.gardener.cloud/typed created\n"
    assert kubectl("apply", "-f", "-", stdin=shoot("typed")) == "shoot.core.gardener.cloud/typed unchanged\n"
    assert kubectl("get", "shoots", space, "typed").split()[:2] == ["NAME", "CLOUDPROFILE"]
    assert "<string>" in kubectl("explain", "shoot.spec.region")
    assert "shoots" in kubectl("api-resources", "--api-group=core.gardener.cloud")
