"""The table of the rules, loaded by nftables into a network namespace, with a pod behind a node and a host outside."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from ipaddress import ip_network

import orjson
import pytest
from tests.domains.garden.airgap import enforced
from tests.domains.garden.airgap.test_isolation import REASON, ROOT

from hortus.domains.garden.airgap.config import read_config
from hortus.domains.garden.airgap.firewall import firewall_rules

MISSING = REASON or ("" if shutil.which("nft") else "there is no nft")
INSIDE = tuple(map(ip_network, ("10.250.0.0/16", "100.96.0.0/24", "fd00:250::/64", "fd00:96::/64")))
LISTED = [f"{enforced.LISTED}/32", "198.51.100.0/25", f"{enforced.LISTED6}/128"]
CONFIG = {
    "mode": "Enforce",
    "allow": [{"cidrs": LISTED, "ports": [443], "protocol": "UDP", "reason": "a host, and a network around it"}],
}


@pytest.mark.skipif(bool(MISSING), reason=MISSING or "there is nftables")
def test_nothing_but_the_list_leaves_the_network_of_the_nodes() -> None:
    found = read_config(CONFIG, "p")
    assert found.errors == ()
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")])}
    done = subprocess.run(
        ["unshare", "--map-root-user", "--net", "--mount", sys.executable, "-m", enforced.__name__],
        input=firewall_rules(found.gap, inside=INSIDE),
        capture_output=True,
        text=True,
        env=variables,
        cwd=ROOT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = orjson.loads(done.stdout)
    # A broadcast of the pod ends at the node, whatever the rules.
    everything = {packet.label for sender in ("node", "pod") for packet in enforced.packets(sender)}
    assert set(result["without"]) == everything - {"pod dhcp broadcast", "pod dhcp6 multicast"}
    near = ("dhcp near", "dhcp6 near", "solicitation near", "listed", "listed6")
    assert set(result["enforced"]) == {
        *(f"{sender} {one}" for sender in ("node", "pod") for one in near),
        "node dhcp broadcast",
        "node dhcp6 multicast",
    }
