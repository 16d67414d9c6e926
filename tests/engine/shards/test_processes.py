"""Real processes on a real API server: one is killed, one is stopped for longer than its lease and goes on."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.engine.shards.replica import CONFIGMAPS, NAMESPACE, STEPS, TIMES

from hortus.kube import Client
from hortus.testing.apiserver import running_apiserver

OBJECTS = [f"object-{number}" for number in range(24)]
ROOT = Path(__file__).resolve().parents[3]
PATIENCE = 60.0


class Trial:
    """The replicas, their journal, and what the server saw."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._kubeconfig = kubeconfig
        self._folder = folder
        self.journal = folder / "journal"
        self.journal.touch()
        self.replicas: list[subprocess.Popen[bytes]] = []
        self.writes: dict[str, list[str]] = {name: [] for name in OBJECTS}
        self.written = asyncio.Condition()

    def start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "tests.engine.shards.replica", str(self._kubeconfig), str(self.journal)]
        with (self._folder / f"log-{len(self.replicas)}").open("wb") as log:
            made = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        self.replicas.append(made)
        return made

    def entries(self, *, after: float = 0.0) -> list[tuple[float, int, str]]:
        whole, _, _ = self.journal.read_text().rpartition("\n")  # the last line may be half written
        lines = (line.split() for line in whole.splitlines())
        found = [(float(when), int(pid), name) for when, pid, name in lines]
        return [entry for entry in found if entry[0] > after]

    async def until(self, answer: Callable[[], bool], what: str) -> None:
        """Wait for writes until `answer` is true."""
        try:
            async with asyncio.timeout(PATIENCE), self.written:
                await self.written.wait_for(answer)
        except TimeoutError:
            logs = "\n".join(log.read_text()[-2000:] for log in self._folder.glob("log-*"))
            pytest.fail(f"waited in vain for: {what}\n{logs}")

    def everything_by(self, *pids: int, after: float) -> Callable[[], bool]:
        """Returns a condition: each object was reconciled after `after`, and at least one by each of these replicas."""

        def answer() -> bool:
            found = self.entries(after=after)
            return {name for _, _, name in found} == set(OBJECTS) and {pid for _, pid, _ in found} >= set(pids)

        return answer

    async def follow(self, client: Client) -> None:
        async for event in client.watch(CONFIGMAPS, NAMESPACE, labels="trial=yes"):
            if event.type in ("ADDED", "MODIFIED"):
                async with self.written:
                    by = event.object.get("data", {}).get("by")
                    if by:
                        self.writes[event.object["metadata"]["name"]].append(by)
                    self.written.notify_all()

    def run_into_each_other(self) -> list[str]:
        """Objects with a write of one reconcile after the first write of a later one."""
        found = []
        for name, writes in self.writes.items():
            order: list[str] = []
            for one in (write.split()[0] for write in writes):
                if one in order[:-1]:
                    found.append(f"{name}: {one} writes again after {order[-1]} has begun")
                elif one not in order:
                    order.append(one)
        return found


@asynccontextmanager
async def trial(folder: Path, *, replicas: int) -> AsyncIterator[Trial]:
    async with running_apiserver() as server, Client.from_kubeconfig(server.kubeconfig) as client:
        for name in OBJECTS:
            metadata = {"name": name, "namespace": NAMESPACE, "labels": {"trial": "yes"}}
            await client.create(CONFIGMAPS, {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        made = Trial(server.kubeconfig, folder)
        following = asyncio.create_task(made.follow(client))
        try:
            for _ in range(replicas):
                made.start()
            pids = [replica.pid for replica in made.replicas]
            await made.until(made.everything_by(*pids, after=0), "all replicas to work")
            yield made
        finally:
            for replica in made.replicas:
                replica.send_signal(signal.SIGCONT)
                replica.terminate()
            for replica in made.replicas:
                await asyncio.to_thread(replica.wait, PATIENCE)
            following.cancel()
            await asyncio.gather(following, return_exceptions=True)


async def test_when_one_is_killed_the_others_take_over_and_nothing_is_lost(tmp_path: Path) -> None:
    async with trial(tmp_path, replicas=3) as made:
        victim, *others = made.replicas
        victim.kill()
        killed = time.monotonic()
        await made.until(made.everything_by(*(one.pid for one in others), after=killed), "the others to take over")
        assert victim.pid not in {pid for when, pid, _ in made.entries(after=killed + 0.5)}
        assert made.run_into_each_other() == []


async def test_one_that_is_stopped_for_longer_than_its_lease_does_nothing_twice_when_it_goes_on(tmp_path: Path) -> None:
    async with trial(tmp_path, replicas=2) as made:
        stopped, other = made.replicas
        stopped.send_signal(signal.SIGSTOP)
        since = time.monotonic()
        await made.until(made.everything_by(other.pid, after=since), "the other to take over")
        # Only what the other took over counts: all of it more than once, with the first still standing.
        taken = max(when for when, _, _ in made.entries(after=since))
        await made.until(made.everything_by(other.pid, after=taken), "the other to go on")
        assert time.monotonic() - since > TIMES.renew_deadline
        stopped.send_signal(signal.SIGCONT)
        resumed = time.monotonic()
        await made.until(made.everything_by(stopped.pid, other.pid, after=resumed), "the stopped one to join again")
        assert made.run_into_each_other() == []
        assert all(len(writes) >= STEPS for writes in made.writes.values())
