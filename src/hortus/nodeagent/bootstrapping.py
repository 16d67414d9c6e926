"""The first start on a machine: the agent's own unit, its credentials, and the kubelet's token."""

from __future__ import annotations

import structlog

from hortus.kube import Access, Client, Clock, ConnectionSettings, Credentials, Secret
from hortus.kube.errors import KubeError
from hortus.nodeagent import identity
from hortus.nodeagent.changes import AGENT_UNIT
from hortus.nodeagent.datavolume import place_data_volume
from hortus.nodeagent.disk import Disk
from hortus.nodeagent.node import unit_path
from hortus.nodeagent.seams import MachineControl, NodeFault, UnitControl
from hortus.nodeagent.settings import NodeAgentConfiguration
from hortus.nodeagent.state import FOLDER
from hortus.nodeagent.wire import LeanTransport, status_of

_log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)

INIT_UNIT = "gardener-node-init.service"
BINARY = "/opt/bin/gardener-node-agent"
OWN_UNIT_MODE = 0o644
_CONNECT_TIMEOUT = 10.0


def own_unit(config_dir: str) -> str:
    """The unit file of the agent."""
    return f"""\
[Unit]
Description=Node agent of the worker pool
After=network-online.target

[Service]
LimitMEMLOCK=infinity
ExecStart={BINARY} --config-dir={config_dir}
Restart=always
RestartSec=5

[Install]
WantedBy=multi-user.target
"""


async def bootstrap(
    disk: Disk, units: UnitControl, machine: MachineControl, settings: NodeAgentConfiguration, *, config_dir: str
) -> None:
    """Makes the agent a unit of the system. The unit that brought the agent ends last, because it runs this."""
    size = settings.data_volume_size
    if size:
        await place_data_volume(machine, size)
    disk.write(unit_path(AGENT_UNIT), own_unit(config_dir).encode(), mode=OWN_UNIT_MODE)
    await units.reload()
    await units.enable(AGENT_UNIT)
    result = await units.restart(AGENT_UNIT)
    if result not in ("done", "timeout"):
        raise NodeFault(f"{AGENT_UNIT} did not start ({result}): see journalctl -u {AGENT_UNIT}")
    await _try_connection(disk, settings)
    await units.disable(INIT_UNIT)


async def _try_connection(disk: Disk, settings: NodeAgentConfiguration) -> None:
    """Reports an API server that does not answer; the agent keeps trying by itself."""
    server = settings.api_server
    if not server.server:
        return
    try:
        await status_of(f"{server.server}/healthz", timeout=_CONNECT_TIMEOUT, ca=disk.read(server.ca_file) or b"")
    except KubeError as error:
        _log.warning("the API server does not answer", server=server.server, error=str(error))


async def reset(disk: Disk, units: UnitControl) -> None:
    """Removes the agent; what it configured stays as it is."""
    await units.disable(AGENT_UNIT)
    disk.remove(unit_path(AGENT_UNIT))
    disk.remove_tree(FOLDER)
    await units.reload()
    await units.stop(AGENT_UNIT)


async def credentials(disk: Disk, settings: NodeAgentConfiguration, clock: Clock, *, hostname: str) -> bool:
    """Makes the kubeconfig of the agent by the machine's token; returns False when it has one."""
    if disk.read(settings.kubeconfig) is not None:
        return False
    token = (disk.read(identity.TOKEN) or b"").decode().strip()
    if not token:
        absent = f"there is neither {settings.kubeconfig} nor {identity.TOKEN}"
        raise NodeFault(f"{absent}: write the machine's bootstrap token to the latter")
    server = settings.api_server
    if not server.server:
        raise NodeFault("apiServer.server is empty: the first start needs the address of the API server")
    bootstrap_user = Credentials(token=Secret(token))
    access = Access(server=server.server, ca=disk.read(server.ca_file) or b"", credentials=bootstrap_user)
    client = Client.over(LeanTransport(access, settings=ConnectionSettings(), clock=clock))
    try:
        identity.write_kubelet_bootstrap(disk, access)
        machine = (disk.read(identity.MACHINE_NAME) or b"").decode().strip() or hostname
        certificate, key = await identity.certificate_for(client, machine, clock)
    finally:
        await client.close()
    identity.write_kubeconfig(disk, settings.kubeconfig, access, certificate, key)
    _log.info("the agent has credentials of its own", machine=machine)
    return True
