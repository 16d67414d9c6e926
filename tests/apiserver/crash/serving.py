"""The API server that `test_kill` kills: `python -m tests.apiserver.crash.serving FOLDER PORT TOKEN [ETCD]`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import uvloop

from hortus.apiserver import ApiServerSettings, open_server
from hortus.apiserver.authn import UserInfo
from hortus.apiserver.store import Backend, EtcdBackend, SqliteBackend

ADMIN = UserInfo(username="kubernetes-admin", groups=("system:masters", "system:authenticated"))


async def serve(folder: Path, port: int, token: str, etcd: str) -> None:
    backend: Backend = EtcdBackend([etcd]) if etcd else SqliteBackend(folder / "state.db")
    server = await open_server(ApiServerSettings(port=port), backend, tokens={("root", token): ADMIN})
    (folder / "ca.pem").write_bytes(server.clusters.server_ca)
    await server.start()
    print("ready", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(serve(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3], (sys.argv[4:] or [""])[0]))
