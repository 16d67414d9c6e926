"""The commands as people type them, containerd's socket, the first credentials, and the configuration file."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from random import Random

import pytest
from tests.nodeagent.cluster import approved_request, settings_text
from tests.nodeagent.realcontainerd import containerd_programs, real_containerd
from tests.nodeagent.world import IMAGE, World, file, osc_of, service, text_of, unit

from hortus.kube import Access, Client, ConnectionSettings, Credentials, Secret, SystemClock
from hortus.kube.kubeconfig import load
from hortus.nodeagent.bootstrapping import bootstrap, credentials, reset
from hortus.nodeagent.containerd import Containerd
from hortus.nodeagent.identity import REQUESTS, renewal_at, validity_of
from hortus.nodeagent.seams import NodeFault
from hortus.nodeagent.settings import AgentConfigError, read
from hortus.nodeagent.wire import LeanTransport
from hortus.simulation.registry import RegistryFolder, RegistryServer
from hortus.testing.apiserver import running_apiserver

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
KUBELET = unit("kubelet.service", service(), filePaths=["/etc/kubelet.conf"])
FIRST = osc_of([file("/etc/kubelet.conf", "a\n")], [KUBELET])
SECOND = osc_of(
    [file("/etc/kubelet.conf", "b\n", permissions=0o644)],
    [
        KUBELET,
        unit("new.service", service(After="kubelet.service")),
    ],
)


def typed(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hortus.nodeagent.main", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


async def planned(tmp_path: Path, *arguments: str) -> str:
    root, osc = tmp_path / "node", tmp_path / "osc.yaml"
    root.mkdir()
    world = World(root)
    await world.converge(FIRST)
    before = world.tree()
    osc.write_bytes(text_of(SECOND))
    done = typed("plan", "--root", str(root), "--osc", str(osc), "--hostname", "node-1", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert world.tree() == before, "a plan changes nothing"
    return done.stdout


async def test_a_plan_says_what_is_written_and_restarted(tmp_path: Path) -> None:
    assert (await planned(tmp_path)).splitlines() == [
        "update   /etc/kubelet.conf  (mode 0644)",
        "    @@ -1 +1 @@",
        "    -a",
        "    +b",
        "create   /etc/systemd/system/new.service",
        "reload   systemd",
        "restart  kubelet.service  (wave 1)",
        "restart  new.service  (wave 2)",
        "2 units restart",
    ]


async def test_a_plan_is_read_by_programs(tmp_path: Path) -> None:
    found = json.loads(await planned(tmp_path, "-o", "json"))
    assert [(step["action"], step["subject"]) for step in found["steps"] if step["action"] != "keep"] == [
        ("update", "/etc/kubelet.conf"),
        ("create", "/etc/systemd/system/new.service"),
        ("reload", "systemd"),
        ("restart", "kubelet.service"),
        ("restart", "new.service"),
    ]
    assert found["untouched"] == []


def test_a_plan_without_or_with_a_broken_file_names_the_fix(tmp_path: Path) -> None:
    missing = typed("plan", "--root", str(tmp_path))
    assert (missing.returncode, missing.stderr.split(":")[0]) == (1, "error")
    assert "--osc FILE" in missing.stderr
    broken = tmp_path / "osc.yaml"
    broken.write_bytes(text_of(osc_of(units=[{"name": "x"}])))
    refused = typed("plan", "--root", str(tmp_path), "--osc", str(broken))
    assert refused.returncode == 1
    assert "spec.units[0].name 'x' is no name of a unit" in refused.stderr


def test_an_agent_without_a_configuration_names_the_fix(tmp_path: Path) -> None:
    done = typed("--root", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.endswith("has no config-*.yaml: write a NodeAgentConfiguration, or set --config-dir\n")


def test_the_sample_configuration_of_gardener_is_read_with_its_defaults(upstream: Path) -> None:
    found = read((upstream / "gardener" / "node-agent" / "10-componentconfig.yaml").read_bytes())
    assert found.secret_name == "name-of-osc-secret"
    assert found.sync_period == 600.0
    assert found.controllers.token.sync_configs[0].path == "/path/on/machine/where/to/sync/the/token/to"
    assert (found.server.health_probes.port, found.server.metrics.port) == (2751, 2752)
    assert (found.controllers.systemd_unit_check.sync_period, found.controllers.systemd_unit_check.stuck_threshold) == (
        "1m",
        "5m",
    )
    assert (found.client_connection.kubeconfig, found.log_format) == ("path/to/kubeconfig", "text")


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("v1alpha1", "v9", "write NodeAgentConfiguration, nodeagent.config.gardener.cloud/v1alpha1"),
        ("secretName: gardener", "secretNam: gardener", "controllers.operatingSystemConfig.secretName is empty"),
        ("path: /var", "path: var", "controllers.token.syncConfigs[0] needs a secretName and an absolute path"),
        ("controllers:\n", "controllers:\n  systemdUnitCheck: {syncPeriod: 1s}\n", "syncPeriod is 1s: set it to 15s"),
        ("controllers:\n", "controllers:\n  systemdUnitCheck: {syncPeriod: x}\n", "systemdUnitCheck.syncPeriod"),
        ("controllers:\n", "logLevel: loud\ncontrollers:\n", "logLevel is 'loud'"),
    ],
)
def test_a_wrong_configuration_names_its_field(old: str, new: str, problem: str) -> None:
    assert old in settings_text()
    with pytest.raises(AgentConfigError) as refused:
        read(settings_text().replace(old, new))
    assert problem in str(refused.value)


# Credentials


async def test_the_first_start_gets_a_certificate_by_the_machines_token(tmp_path: Path) -> None:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as admin:
        world = World(tmp_path)
        files = world.files
        files.write("/var/lib/gardener-node-agent/credentials/bootstrap-token", server.token.encode(), mode=0o640)
        files.write("/var/lib/gardener-node-agent/cluster-ca.crt", server.ca, mode=0o644)
        files.write("/var/lib/gardener-node-agent/machine-name", b"machine-1\n", mode=0o644)
        address = (
            f"apiServer: {{server: '{server.cluster_url()}', caFile: /var/lib/gardener-node-agent/cluster-ca.crt}}\n"
        )
        settings = read(settings_text() + address)
        work = asyncio.create_task(credentials(files, settings, SystemClock(), hostname="node-1"))

        request = await approved_request(admin)
        assert request["metadata"]["name"].startswith("node-agent-csr-")
        assert request["spec"]["usages"] == ["digital signature", "client auth"]
        assert request["spec"]["expirationSeconds"] == 720 * 3600
        assert await work is True
        access = load(tmp_path / "var/lib/gardener-node-agent/credentials/kubeconfig").access()
        assert files.mode("/var/lib/gardener-node-agent/credentials/kubeconfig") == 0o600
        assert files.read("/var/lib/kubelet/kubeconfig-bootstrap") is not None
        assert await credentials(files, settings, SystemClock(), hostname="node-1") is False
        validity = await validity_of(access.credentials.certificate)
        assert validity is not None
        assert 719 * 3600 <= validity[1] - validity[0] <= 721 * 3600
        async with Client.over(LeanTransport(access, settings=ConnectionSettings(), clock=SystemClock())) as own:
            review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
            answer = await own.request(
                "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", json.dumps(review).encode()
            )
            user = json.loads(answer.body)["status"]["userInfo"]
        assert user["username"] == "gardener.cloud:node-agent:machine:machine-1"
        assert "gardener.cloud:node-agents" in user["groups"]


@pytest.mark.parametrize("seed", range(20))
def test_a_certificate_is_renewed_after_80_to_88_percent(seed: int) -> None:
    assert 180.0 <= renewal_at(100.0, 200.0, Random(seed)) <= 188.0


async def test_bootstrap_makes_the_agent_a_unit_and_reset_removes_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    settings = read(settings_text())
    await bootstrap(world.files, world.units, world.host, settings, config_dir="/var/lib/gardener-node-agent")
    name = "gardener-node-agent.service"
    assert world.files.mode(f"/etc/systemd/system/{name}") == 0o644
    assert world.unit_states() == {
        name: ("active", "enabled"),
        "gardener-node-init.service": ("inactive", "disabled"),
    }
    await reset(world.files, world.units)
    assert world.tree() == {}
    assert world.unit_states()[name] == ("inactive", "disabled")
    assert world.host.commands == [], "a machine without a volume for data has no command run"


# The transport and containerd


async def test_a_server_that_is_not_there_or_not_trusted_is_reported_with_its_address() -> None:
    settings = ConnectionSettings()
    gone = Access(server="http://127.0.0.1:1", credentials=Credentials(token=Secret("confidential")))
    async with Client.over(LeanTransport(gone, settings=settings, clock=SystemClock())) as client:
        with pytest.raises(Exception, match=r"127\.0\.0\.1:1: cannot connect") as refused:
            await client.create(REQUESTS, {"metadata": {"name": "x"}})
        assert "confidential" not in str(refused.value)
    async with running_apiserver() as server:
        other = Access(server=server.url, credentials=Credentials(token=Secret("confidential")))
        async with Client.over(LeanTransport(other, settings=settings, clock=SystemClock())) as client:
            with pytest.raises(Exception, match="TLS failed"):
                await client.create(REQUESTS, {"metadata": {"name": "x"}})


def tar_of(files: dict[str, bytes]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(content), 0o755
            archive.addfile(member, io.BytesIO(content))
    return held.getvalue()


def image_archive(files: dict[str, bytes]) -> bytes:
    """An image of one layer, as `docker save` writes it."""
    layer = tar_of(files)
    diff = f"sha256:{hashlib.sha256(layer).hexdigest()}"
    config = {"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": [diff]}, "config": {}}
    manifest = [{"Config": "config.json", "RepoTags": [IMAGE], "Layers": ["layer.tar"]}]
    parts = {"layer.tar": layer, "config.json": json.dumps(config).encode()}
    return tar_of({**parts, "manifest.json": json.dumps(manifest).encode()})


async def test_a_real_containerd_reports_its_version_and_default_configuration(tmp_path: Path) -> None:
    async with real_containerd(tmp_path) as (containerd, socket):
        assert (await containerd.version())[0].isdigit()
        with pytest.raises(NodeFault, match=r"containerd does not answer on .*; see journalctl -u containerd"):
            await Containerd(f"{socket}.none").version()
        assert "version = " in await containerd.default_config()
        with pytest.raises(NodeFault, match="failed"):
            await containerd.file_from_image("127.0.0.1:1/no/such:image", "/bin/x")
        archive = tmp_path / "image.tar"
        archive.write_bytes(image_archive({"opt/bin/kubelet": b"kubelet 2", "ko-app/agent": b"agent"}))
        arguments = ["--address", str(socket), "--namespace", "k8s.io", "images", "import", str(archive)]
        ctr = containerd_programs()[1]
        done = await asyncio.to_thread(subprocess.run, [ctr, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert await containerd.file_from_image(IMAGE, "/opt/bin/kubelet") == b"kubelet 2"
        assert await containerd.file_from_image(IMAGE, "/gardener-node-agent/agent") == b"agent", "an image of ko"
        with pytest.raises(NodeFault, match="has no file /bin/other; correct filePathInImage"):
            await containerd.file_from_image(IMAGE, "/bin/other")
        assert "image-" not in Path("/proc/mounts").read_text(), "nothing stays mounted"


async def test_a_file_comes_from_an_image_that_a_real_containerd_pulls_by_the_mirrors_of_the_configuration(
    tmp_path: Path,
) -> None:
    pushed = RegistryFolder(tmp_path / "registry")
    layer = tar_of({"opt/bin/kubelet": b"kubelet 3"})
    config = {"architecture": platform_word(), "os": "linux", "config": {}}
    config["rootfs"] = {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]}
    blobs = {"config": json.dumps(config).encode(), "layer": layer}
    parts = {name: {"digest": pushed.put_blob("kubelet", data), "size": len(data)} for name, data in blobs.items()}
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST_TYPE,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", **parts["config"]},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", **parts["layer"]}],
    }
    pushed.put_manifest("kubelet", json.dumps(manifest).encode(), MANIFEST_TYPE, tag="v1")
    world = World(tmp_path / "node")
    async with RegistryServer(pushed) as registry, real_containerd(tmp_path) as (containerd, _):
        world.runtime = containerd  # type: ignore[assignment]
        mirror = {"upstream": "registry.example.org", "hosts": [{"url": f"http://{registry.address}"}]}
        osc = osc_of(
            [
                {
                    "path": "/opt/bin/kubelet",
                    "permissions": 0o755,
                    "content": {"imageRef": {"image": IMAGE, "filePathInImage": "/opt/bin/kubelet"}},
                }
            ],
            containerd={"sandboxImage": "pause", "registries": [mirror]},
        )
        world.units.system.add("containerd.service")
        (tmp_path / "certs.d").symlink_to(tmp_path / "node/etc/containerd/certs.d")
        await world.converge(osc)
        assert world.files.read("/opt/bin/kubelet") == b"kubelet 3"
        assert world.files.mode("/opt/bin/kubelet") == 0o755
        with pytest.raises(NodeFault, match=r"kubelet:v2 failed: .*failed to resolve reference"):
            await containerd.file_from_image(IMAGE.replace(":v1", ":v2"), "/opt/bin/kubelet")


def platform_word() -> str:
    """The architecture of this machine, as images name it."""
    return {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]
