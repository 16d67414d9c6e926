"""Fixtures that every topic shares."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from hortus.testing.apiserver import TestServer

pytest_plugins = ["tests.selection.plugin"]

# Also where the environment forbids to keep compiled modules: each worker, and each of the thousands of programs that
# tests start, would compile the whole product again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A TLS context that trusts the system's authorities takes 28 ms of processor time with all of them in one file; aiohttp
# makes one in each process, and a client without an authority of its own one each. No test calls a server that they
# certify.
os.environ["SSL_CERT_FILE"] = os.devnull

# The time of an example says more about the machine and its load than about the code.
settings.register_profile("any-machine", settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any-machine")

# A program that a test runs in this process configures logs and has its loggers keep that for good: later tests would
# capture nothing.
_configure = structlog.configure


def _configure_for_a_test(**words: Any) -> None:
    _configure(**{**words, "cache_logger_on_first_use": False})


structlog.configure = _configure_for_a_test
structlog.configure()

_UPSTREAM = Path(__file__).resolve().parents[2] / "shared" / "upstream"


@pytest.fixture(autouse=True)
def logs_are_as_before() -> Iterator[None]:
    """Configures logs again after a test that has reset them, or has run a program that configures its own."""
    if not structlog.is_configured():
        structlog.configure()
    root, configured = logging.getLogger(), structlog.get_config()
    handlers, level = [*root.handlers], root.level
    yield
    if structlog.get_config() != configured:
        structlog.configure(**configured)
    root.handlers[:], root.level = handlers, level


@pytest.fixture(scope="session")
def upstream() -> Path:
    """The folder with the Go systems' own data. `HORTUS_CONFORMANCE_DATA` names another place."""
    folder = Path(os.environ.get("HORTUS_CONFORMANCE_DATA") or _UPSTREAM)
    if not folder.is_dir():
        pytest.skip(
            f"no conformance data at {folder}: set HORTUS_CONFORMANCE_DATA to compare with the Go systems' files"
        )
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[TestServer]:
    """A server for the tests of one module. Modules that need other clusters or extensions define their own."""
    from hortus.testing.apiserver import started_apiserver

    with started_apiserver() as running:
        yield running


@pytest.fixture(scope="module", params=["ours", pytest.param("original", marks=pytest.mark.real_apiserver)])
def either_server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """An API server of ours, then a real kube-apiserver with its controllers; both have a `kubeconfig`."""
    from tests.oracles.controlplane import find_assets, running_control_plane, why_none

    from hortus.testing.apiserver import started_apiserver

    if request.param == "ours":
        with started_apiserver() as running:
            yield running
        return
    assets = find_assets()
    if assets is None:
        pytest.skip(why_none())
    with running_control_plane(assets, tmp_path_factory.mktemp("control-plane")) as real:
        yield real
