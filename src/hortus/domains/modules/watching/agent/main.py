"""The program `hortus-watcher-agent`."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from typing import NoReturn

import structlog
import uvloop
from prometheus_client import CollectorRegistry

from hortus.domains.modules.watching.agent.buffer import EventBuffer
from hortus.domains.modules.watching.agent.metrics import AgentMetrics
from hortus.domains.modules.watching.agent.server import running
from hortus.domains.modules.watching.agent.settings import AgentSettings, AgentSettingsError, from_environment
from hortus.engine.logging import configure_by_default
from hortus.kube.clock import SystemClock

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

USAGE = """\
Usage: hortus-watcher-agent

Runs in a managed cluster as the validating webhook skr-webhook, allows every request, and reports changes of Kymas to
the control plane. Settings are environment variables:

  CA_CERT, TLS_CERT, TLS_KEY  PEM files: the control plane's CA, the own certificate and its key (required)
  KCP_ADDR                    host:port of the control plane's listener (required)
  KCP_CONTRACT                version of its requests: v2 (required)
  WEBHOOK_PORT                port of the webhook, with TLS 1.3 (8443)
  METRICS_PORT                port of /metrics, /healthz and /readyz (2112)
  BIND_HOST                   address to listen on (every interface)
  BUFFER_DIR                  folder that keeps events while the control plane is away (none: in memory)
  BUFFER_LIMIT                events kept for one manager (1024)
  RUNTIME_ID                  sender that events name (none)
"""


def main() -> None:
    if any(word in ("-h", "-help", "--help") for word in sys.argv[1:]):
        sys.stdout.write(USAGE)
        return
    configure_by_default()
    try:
        uvloop.run(_serve(from_environment(os.environ)))
    except OSError as error:
        _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (AgentSettingsError, ValueError) as error:
        _fail(str(error))


def _fail(problem: str) -> NoReturn:
    sys.stderr.write(f"error: {problem}\n")
    raise SystemExit(1)


async def _serve(settings: AgentSettings) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    buffer = EventBuffer(settings.buffer_dir, limit=settings.buffer_limit)
    metrics = AgentMetrics(buffer, CollectorRegistry())
    try:
        async with running(settings, metrics, buffer, clock=SystemClock()) as agent:
            _log.info(
                "the agent runs",
                webhook_port=agent.webhook_port,
                metrics_port=agent.metrics_port,
                waiting=len(buffer),
            )
            await stop.wait()
    finally:
        buffer.close()
