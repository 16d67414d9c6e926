"""The way into clusters by their profiles, with the published Go packages and `hortus credential-plugin`."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.domains.inventory.world import FLEET, HOME, NODES, InventoryWorld, properties
from tests.oracles.programs import built_program, why_not

from hortus.domains.inventory.types import CLUSTER_PROFILES, Property
from hortus.engine.kubeconfigs import SECRETS


async def reached(here: InventoryWorld, folder: Path, name: str) -> dict[str, Any]:
    """The answer of tests/oracles/clusteraccess for one profile."""
    program = built_program("clusteraccess")
    if program is None:
        pytest.skip(why_not("clusteraccess"))
    management = here.server.kubeconfig_for(here.name)
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": ["-P", "-m", "hortus", "--kubeconfig", str(management), "credential-plugin"],
        "provideClusterInfo": True,
    }
    providers = folder / "providers.json"
    providers.write_text(json.dumps({"providers": [{"name": "hortus-secret", "execConfig": plugin}]}))
    command = [program, str(management), FLEET, name, str(providers)]
    ran = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=60, check=False)
    answer: dict[str, Any] = json.loads(ran.stdout)
    return answer


async def test_a_go_program_reaches_a_member_by_its_profile(here: InventoryWorld, tmp_path: Path) -> None:
    await here.workload("a")
    async with here.inside("a") as inside:
        await inside.create(NODES, {"metadata": {"name": "n0"}})
    async with here.controllers():
        await here.secret("prod", "a")
        profile = await here.profile(
            "prod",
            lambda found: properties(found).get(Property.NODES) == "1" and found["status"].get("accessProviders"),
        )
    answer = await reached(here, tmp_path, "prod")
    (provider,) = profile["status"]["accessProviders"]
    assert answer == {
        "uid": properties(profile)[Property.UID],
        "host": provider["cluster"]["server"],
        "nodes": ["n0"],
    }


async def test_an_edited_profile_gets_no_credential_for_another_server(here: InventoryWorld, tmp_path: Path) -> None:
    await here.workload("a")
    await here.workload("b")
    async with here.controllers():
        await here.secret("prod", "a")
        await here.secret("other", "b")
        profile = await here.profile("prod", lambda found: (found.get("status") or {}).get("accessProviders"))
        await here.profile("other", lambda found: (found.get("status") or {}).get("accessProviders"))
    (provider,) = profile["status"]["accessProviders"]
    settings = {"secret": {"namespace": HOME, "name": "other", "key": "config"}}
    provider["cluster"]["extensions"][0]["extension"] = settings
    patch = {"status": {"accessProviders": [provider]}}
    await here.client.patch(CLUSTER_PROFILES, "prod", patch, FLEET, subresource="status")
    assert (await reached(here, tmp_path, "prod"))["error"]
    assert await here.client.get(SECRETS, "other", HOME)
