"""Several `hortus up` on one etcd are one API."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.apiserver.store.etcdserver import find_etcd, free_port, running_etcd
from tests.scenarios.running import kubectl, typed, up


def test_two_servers_on_one_etcd_serve_the_same_objects(tmp_path: Path) -> None:
    binary, port = find_etcd(), free_port()
    if binary is None:
        pytest.skip("no etcd here: put it on the PATH (Debian: etcd-server) or name it in HORTUS_ETCD")
    with running_etcd(binary, tmp_path / "etcd", port):
        words = ["--store", f"etcd://127.0.0.1:{free_port()},127.0.0.1:{port}/fleet/", "--serve-only", "--port", "0"]
        with up(tmp_path / "one", *words) as one, up(tmp_path / "other", *words) as other:
            assert set(one.processes()) == {"apiserver"}
            assert f"127.0.0.1:{port}/fleet/" in one.output
            made = kubectl(one.kubeconfig, "create", "configmap", "shared", "--from-literal=a=b")
            assert made.returncode == 0, made.stderr
            read = kubectl(other.kubeconfig, "get", "configmap", "shared", "-o", "jsonpath={.data.a}")
            assert read.stdout == "b", read.stderr
            assert kubectl(one.garden, "get", "shoots", "-A").returncode == 0
            assert not (tmp_path / "one" / "state.db").exists()


def test_a_store_that_cannot_be_is_said_at_once(tmp_path: Path) -> None:
    refused = typed("up", "--state-dir", str(tmp_path), "--store", "etcd://me:canary@127.0.0.1:1")
    assert refused.returncode == 1
    assert "store_password_file" in refused.stderr
    assert "canary" not in refused.stderr + refused.stdout
