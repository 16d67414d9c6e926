"""`hortus migrate-credentials` from the plan to the end, over real sockets, again after a kill, never on a guess."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner, Result
from tests.domains.clusters.test_bindings import OTHER_SECRET, credentials_binding, secret_binding
from tests.domains.clusters.world import World

from hortus.domains.clusters.commands import register
from hortus.domains.clusters.garden import CREDENTIALS_BINDINGS, SECRET_BINDINGS, SHOOTS
from hortus.domains.clusters.migration import (
    MANAGER,
    MigrationReport,
    Move,
    make_binding,
    make_move,
    plan_move,
)
from hortus.kube.objects import Object
from hortus.terminal import CommandGroup, Connections, TargetSelection

ALL = TargetSelection(everything=True)


class Shell:
    def __init__(self, here: World, folder: Path) -> None:
        self._here = here
        self._app = CommandGroup()
        self._report = folder / "report.json"
        connections = Connections(
            local_state=Path("/nonexistent"), garden_kubeconfig=here.server.kubeconfig_for("garden")
        )
        register(self._app, lambda: connections)

    async def type(self, *words: str) -> Result:
        arguments = ["migrate-credentials", *words, "-n", self._here.garden_namespace, "--report", str(self._report)]
        return await asyncio.to_thread(CliRunner().invoke, self._app, arguments)

    async def outcomes(self, *words: str, code: int) -> dict[str, str]:
        """The outcome of each object, by kind and name."""
        done = await self.type(*words)
        assert done.exit_code == code, f"{done.output}{done.exception!r}"
        report = msgspec.json.decode(self._report.read_bytes(), type=MigrationReport)
        return {f"{one.kind} {one.name}": one.outcome for one in report.objects}


@pytest.fixture
def shell(here: World, tmp_path: Path) -> Shell:
    return Shell(here, tmp_path)


async def _bind(here: World, **fields: Any) -> None:
    await here.garden.create(SECRET_BINDINGS, secret_binding(here.garden_namespace, **fields))


async def _shoot(here: World, name: str, binding: str | None = "sb-1", provider: str = "aws") -> None:
    worker = {"name": "a", "machine": {"type": "m", "image": {"name": "g", "version": "1.0.0"}}}
    spec: Object = {
        "provider": {"type": provider, "workers": [{**worker, "minimum": 1, "maximum": 1, "zones": ["z"]}]},
        "kubernetes": {"version": "1.33.5"},
        "region": "eu-central-1",
        "cloudProfileName": provider,
        "secretBindingName": binding,
        "networking": {"type": "calico", "nodes": "10.250.0.0/16"},
    }
    if binding is None:
        # A shoot without workers, which alone has no binding.
        spec = {
            **{key: spec[key] for key in ("kubernetes", "region", "cloudProfileName")},
            "provider": {"type": provider},
        }
    metadata = {"name": name, "namespace": here.garden_namespace, "labels": {"stage": name[0]}}
    await here.garden.create(SHOOTS, {"metadata": metadata, "spec": spec})


async def _names(here: World, name: str) -> tuple[str | None, str | None]:
    spec = (await here.shoot(name))["spec"]
    return spec.get("secretBindingName"), spec.get("credentialsBindingName")


async def _made(here: World, name: str) -> Object:
    return await here.garden.get(CREDENTIALS_BINDINGS, name, here.garden_namespace)


async def test_a_project_is_moved_after_a_plan_that_writes_nothing(here: World, shell: Shell) -> None:
    quota = {"apiVersion": "core.gardener.cloud/v1beta1", "kind": "Quota", "name": "q", "namespace": "garden"}
    await _bind(here, quotas=[quota])
    await _bind(here, name="unused")
    for name in ("a", "b"):
        await _shoot(here, name)
    before = await here.revision()
    planned = {
        "CredentialsBinding sb-1": "to make",
        "CredentialsBinding unused": "to make",
        "Shoot a": "to change",
        "Shoot b": "to change",
    }
    assert await shell.outcomes("--all", code=1) == planned
    assert await here.revision() == before
    asked = await shell.type("--all", "--apply")
    assert asked.exit_code != 0 and "Change the binding of 2 Shoots (a, b)" in asked.output
    done = {name: "made" if outcome == "to make" else "changed" for name, outcome in planned.items()}
    assert await shell.outcomes("--all", "--apply", "-y", code=0) == done
    assert [await _names(here, name) for name in ("a", "b")] == [(None, "sb-1"), (None, "sb-1")]
    made = await _made(here, "sb-1")
    place = here.garden_namespace
    assert {key: made[key] for key in ("provider", "credentialsRef", "quotas")} == {
        "provider": {"type": "aws"},
        "credentialsRef": {"apiVersion": "v1", "kind": "Secret", "name": "account", "namespace": place},
        "quotas": [quota],
    }
    assert {one["manager"] for one in made["metadata"]["managedFields"]} == {MANAGER}
    before = await here.revision()
    assert set((await shell.outcomes("--all", "--apply", "-y", code=0)).values()) == {"done"}
    assert await here.revision() == before


async def test_named_and_labelled_shoots_move_alone(here: World, shell: Shell) -> None:
    await _bind(here)
    await _bind(here, name="unused")
    for name in ("a", "b", "c"):
        await _shoot(here, name)
    assert await shell.outcomes("a", "--apply", code=0) == {"CredentialsBinding sb-1": "made", "Shoot a": "changed"}
    moved = {"CredentialsBinding sb-1": "done", "Shoot b": "changed"}
    assert await shell.outcomes("-l", "stage=b", "--apply", "-y", code=0) == moved
    assert [await _names(here, name) for name in "abc"] == [(None, "sb-1"), (None, "sb-1"), ("sb-1", None)]
    missing = await shell.type("nobody")
    assert missing.exit_code != 0 and "no shoot of project namespace" in missing.output
    assert (await shell.type()).exit_code == 2


async def test_what_cannot_be_proven_is_refused_and_the_rest_moves(here: World, shell: Shell) -> None:
    place = here.garden_namespace
    await _bind(here)
    await _bind(here, name="rival")
    await _bind(here, name="identity")
    await _bind(here, name="shared", provider={"type": "aws,gcp"})
    await here.garden.create(CREDENTIALS_BINDINGS, credentials_binding("rival", place, credentialsRef=OTHER_SECRET))
    identity = credentials_binding("identity", place, kind="WorkloadIdentity")
    await here.garden.create(CREDENTIALS_BINDINGS, identity)
    for name, binding in (("good", "sb-1"), ("lost", "gone"), ("odd", "rival"), ("wid", "identity"), ("one", "shared")):
        await _shoot(here, name, binding)
    await _shoot(here, "two", "shared", "gcp")
    # The same Secret is everywhere, so the bindings of others would do: only the first has none of them.
    for name in ("rival", "identity"):
        await here.garden.delete(SECRET_BINDINGS, name, place)
        apart = {"name": f"of-{name}", "namespace": place}
        await _bind(here, name=name, secretRef=apart)
    found = await shell.outcomes("--all", "--apply", "-y", code=1)
    assert found == {
        "CredentialsBinding sb-1": "made",
        "CredentialsBinding gone": "refused",
        "CredentialsBinding rival": "refused",
        "CredentialsBinding identity": "refused",
        "CredentialsBinding shared": "refused",
        "Shoot good": "changed",
        "Shoot lost": "refused",
        "Shoot odd": "refused",
        "Shoot wid": "refused",
        "Shoot one": "refused",
        "Shoot two": "refused",
    }
    shown = (await shell.type("--all")).output
    assert "there is no SecretBinding gone" in shown
    assert (
        f"is for aws and leads to Secret garden-t/another, while SecretBinding rival leads to Secret {place}/of-rival"
        in shown
    )
    assert f"leads to WorkloadIdentity {place}/account" in shown
    assert "SecretBinding shared is for provider types aws, gcp, a CredentialsBinding for one" in shown


async def test_a_move_that_was_killed_goes_on_where_it_was(here: World, shell: Shell) -> None:
    await _bind(here)
    for name in ("a", "b", "c"):
        await _shoot(here, name)
    move = await plan_move(here.garden, here.garden_namespace, ALL)
    [binding] = move.bindings.values()
    assert (await make_binding(here.garden, binding)).outcome == "made"
    partial = Move({}, {"a": move.shoots["a"]}, {})
    assert [one.outcome for one in await make_move(here.garden, here.garden_namespace, partial, at_once=1)] == [
        "changed"
    ]
    left = {"CredentialsBinding sb-1": "done", "Shoot a": "done", "Shoot b": "changed", "Shoot c": "changed"}
    assert await shell.outcomes("--all", "--apply", "-y", code=0) == left


async def test_a_shoot_that_changed_since_the_plan_is_left_alone(here: World) -> None:
    await _bind(here)
    await _shoot(here, "a")
    move = await plan_move(here.garden, here.garden_namespace, ALL)
    labels = {"metadata": {"labels": {"new": "label"}}}
    await here.garden.patch(SHOOTS, "a", labels, here.garden_namespace)
    found = await make_move(here.garden, here.garden_namespace, move, at_once=1)
    assert [(one.name, one.outcome) for one in found] == [("sb-1", "made"), ("a", "failed")]
    assert found[1].why == "the shoot changed meanwhile; run it again"
    assert await _names(here, "a") == ("sb-1", None)


async def test_shoots_without_a_binding_and_those_being_deleted_stay_as_they_are(here: World, shell: Shell) -> None:
    await _bind(here)
    await _shoot(here, "none", None)
    await _shoot(here, "dying")
    annotation = {"confirmation.gardener.cloud/deletion": "true"}
    body = {"metadata": {"finalizers": ["gardener"], "annotations": annotation}}
    await here.garden.patch(SHOOTS, "dying", body, here.garden_namespace)
    await here.garden.delete(SHOOTS, "dying", here.garden_namespace)
    found = await shell.outcomes("none", "dying", "--apply", code=1)
    assert found == {"CredentialsBinding sb-1": "made", "Shoot none": "done", "Shoot dying": "refused"}
    await here.vanish("dying")
