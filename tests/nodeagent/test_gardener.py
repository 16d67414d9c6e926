"""Gardener's node agent and ours on the same configurations: what is read, what differs, what becomes of a node."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import msgspec
import pytest
from tests.nodeagent.randomosc import configuration, successor
from tests.nodeagent.world import PATH, Osc, text_of
from tests.oracles.programs import GoProgram

from hortus.nodeagent.changes import differences, registries_of, units_of
from hortus.nodeagent.inplace import in_place_changes
from hortus.nodeagent.kubeletfile import kubelet_settings
from hortus.nodeagent.osc import OperatingSystemConfig, OscError, OscUnit, convert, decode
from hortus.nodeagent.settings import read
from hortus.nodeagent.validation import problems

HOST = "node-1"
SEED = 20261
pytestmark = pytest.mark.oracle
LONG = (pytest.mark.soak, pytest.mark.timeout(3600))
FEW, MANY = 1000, pytest.param(20_000, marks=LONG)
RELEASE = 'PRETTY_NAME="Garden Linux {}"\n'


# Reading


def spoiled(random: Random, osc: Osc) -> tuple[Osc, str]:
    """A copy with one value of another type, and the place of it."""
    found = copy.deepcopy(osc)
    places = list(_places(found, ""))
    holder, key, place = random.choice(places)
    holder[key] = random.choice((5, -1, 1.5, True, "text", [], {}, ["x"], {"a": "b"}))
    return found, place


def _places(value: Any, at: str) -> Iterator[tuple[Any, Any, str]]:
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, each in items:
        place = f"{at}.{key}" if isinstance(value, dict) else at
        yield value, key, place
        if isinstance(each, dict | list) and not place.endswith(".values"):
            yield from _places(each, place)


def agree(ours: Any, theirs: Any, at: str = "") -> None:
    """Fails at the first field that has another value on the two sides, or that one side does not read."""
    if isinstance(ours, msgspec.Struct):
        theirs = theirs or {}
        fields = {field.encode_name: field.name for field in msgspec.structs.fields(ours)}
        assert set(theirs) <= set(fields), f"{at} has fields that are not read"
        for name, attribute in fields.items():
            agree(getattr(ours, attribute), theirs.get(name), f"{at}.{name}")
    elif isinstance(ours, tuple):
        theirs = theirs or []
        assert len(ours) == len(theirs), at
        for index, (mine, their) in enumerate(zip(ours, theirs, strict=True)):
            agree(mine, their, f"{at}[{index}]")
    elif hasattr(ours, "isoformat"):
        assert ours == msgspec.convert(theirs, type(ours)), at
    else:
        assert (ours == theirs) or (ours == "" and theirs is None), f"{at}: {ours!r} and {theirs!r}"


@pytest.mark.parametrize("number", [FEW, MANY])
def test_a_configuration_is_read_as_gardener_reads_it(number: int, gardener: GoProgram) -> None:
    random, refused = Random(SEED), 0
    for _ in range(number):
        osc = configuration(random)
        place = ""
        if random.random() < 0.6:
            osc, place = spoiled(random, osc)
        text = text_of(osc)
        answer = gardener.ask(op="decode", text=text.decode())
        try:
            ours = decode(text)
        except OscError as error:
            refused += 1
            known = place in STRICTER
            assert known or "error" in answer, f"{place}: {error}"
        else:
            assert "answer" in answer, f"{place}: {answer}"
            agree(ours, answer["answer"])
    assert refused > number // 10


STRICTER = {
    ".kind",
    ".apiVersion",
    ".spec.criConfig.cgroupDriver",
    ".spec.criConfig.containerd.plugins.op",
}
"""Fields in which a text that Gardener's agent reads is refused: its validation does, or a node would lose its
configuration."""


def test_the_configurations_of_real_pools_are_read_and_keep_the_rules(gardener: GoProgram) -> None:
    for secret in gardener.ask(op="pools", shoot=shoot())["answer"].values():
        osc = decode(secret["text"])
        assert problems(osc) == []
        answer = gardener.ask(op="decode", text=secret["text"])["answer"]
        del answer["metadata"]
        agree(osc, {**answer, "metadata": {}})
        assert kubelet_settings(osc).reserved == {"cpu": "80m", "memory": "1Gi"}


def test_the_configuration_file_that_gardenlet_writes_is_read(gardener: GoProgram) -> None:
    secret = gardener.ask(op="pools", shoot=shoot())["answer"]["a"]
    (file,) = [each for each in decode(secret["text"]).spec.files if "/gardener-node-agent/config-" in each.path]
    assert file.content.inline is not None
    settings = read(file.content.inline.decoded())
    assert (settings.log_level, settings.log_format) == ("info", "json")
    assert (settings.client_connection.qps, settings.client_connection.burst) == (50.0, 100)
    assert (settings.secret_name, settings.kubernetes_version) == ("gardener-node-agent-a", "1.33.1")
    assert (settings.server.health_probes.port, settings.server.metrics.port) == (2751, 2752)


def shoot(**pool: Any) -> Osc:
    """A Shoot with a pool that is updated in place, and one that is not."""
    worker = {
        "name": "a",
        "machine": {"type": "m5.large", "image": {"name": "gardenlinux", "version": "1592.4.0"}},
        "minimum": 1,
        "maximum": 1,
    }
    workers = [{**worker, "updateStrategy": "AutoInPlaceUpdate", **pool}, {**worker, "name": "b"}]
    return {
        "metadata": {"name": "shoot", "namespace": "garden-project"},
        "spec": {
            "region": "europe",
            "kubernetes": {"version": "1.33.1"},
            "provider": {"type": "aws", "workers": workers},
        },
    }


# Differences


def their_differences(answer: Osc) -> Osc:
    """The same form for both sides, of what Gardener's agent wrote down."""
    files, units, containerd = answer["files"], answer["units"], answer["containerd"]
    update = answer["inPlaceUpdates"]
    authorities = set(update["certificateAuthoritiesRotation"].values())
    assert len(authorities) == 1
    return {
        "files": sorted(each["path"] for each in files.get("changed", ())),
        "removed_files": sorted(each["path"] for each in files.get("deleted", ())),
        "units": {
            each["name"]: sorted({drop_in["name"] for drop_in in each["dropInsChanges"].get("deleted", ())})
            for each in units.get("changed", ())
        },
        "removed_units": sorted(each["name"] for each in units.get("deleted", ())),
        "containerd": containerd["configFileChanged"],
        "probed": sorted(containerd["registries"].get("upstreamsToProbe", ())),
        "removed_registries": sorted(each["upstream"] for each in containerd["registries"].get("deleted", ())),
        "in_place": {
            "system": update["operatingSystem"],
            "kubelet": update["kubelet"]["minorVersion"] or update["kubelet"]["config"],
            "cpu": update["kubelet"]["cpuManagerPolicy"],
            "authorities": authorities.pop(),
            "key": update["serviceAccountKeyRotation"],
        },
    }


def our_differences(old: OperatingSystemConfig | None, new: OperatingSystemConfig, release: str) -> tuple[Osc, Osc]:
    """The differences in the form of both sides, and the verb of each unit."""
    update = in_place_changes(old, new, release) if old is not None else None
    found = differences(old, new, hostname=HOST, path=PATH)
    registries = {each.upstream: each for each in new.containerd.registries} if new.containerd else {}
    return {
        "files": sorted(found.files),
        "removed_files": sorted(found.removed_files),
        "units": {each.name: sorted(each.removed_drop_ins) for each in found.units},
        "removed_units": sorted(each.name for each in found.removed_units),
        "containerd": found.containerd,
        "probed": sorted(name for name in found.registries if registries[name].readiness_probe),
        "removed_registries": sorted(found.removed_registries),
        "in_place": {
            "system": bool(update and update.os_version),
            "kubelet": bool(update and update.kubelet),
            "cpu": bool(update and update.cpu_manager),
            "authorities": bool(update and update.authorities),
            "key": bool(update and update.service_account_key),
        },
    }, {each.name: each.verb for each in found.units}


def reads_the_same(before: OscUnit | None, unit: OscUnit, changed: set[str]) -> bool:
    """True for a unit of which neither the wish to run nor anything that its process has read is another one."""
    if before is None or before.runs != unit.runs:
        return False
    if not unit.runs:
        return True
    return (
        changed.isdisjoint(unit.file_paths)
        and before.content == unit.content
        and before.by_name == unit.by_name
        and set(before.file_paths) == set(unit.file_paths)
    )


@pytest.mark.parametrize("number", [FEW, MANY])
def test_the_differences_are_those_of_gardener(number: int, gardener: GoProgram) -> None:
    random, seen, spared = Random(SEED + 1), Counter[str](), 0
    for _ in range(number):
        first = configuration(random) if random.random() < 0.9 else None
        second = successor(random, first) if first is not None else configuration(random)
        release = RELEASE.format(random.choice(("1592.4", "1592.5", "1592.4.0")))
        old, new = convert(first) if first is not None else None, convert(second)
        texts = {"text": text_of(second).decode(), "old": text_of(first).decode() if first is not None else ""}
        answer = gardener.ask(op="changes", release=release, host=HOST, **texts)
        assert "answer" in answer, answer
        theirs, (ours, verbs) = their_differences(answer["answer"]), our_differences(old, new, release)
        if old is None and new.containerd is None:
            # Gardener's agent restarts containerd with the first configuration, also where that has nothing for it.
            theirs["containerd"] = False
        # Gardener's agent probes registries that have not changed again: it loses the old ones while it looks for those
        # that are gone.
        before_registries = registries_of(old) if old is not None else {}
        again = set(theirs["probed"]) - set(ours["probed"])
        assert all(before_registries.get(name) == each for name, each in registries_of(new).items() if name in again)
        theirs["probed"] = ours["probed"]
        assert ours == theirs
        before = units_of(old, PATH) if old is not None else {}
        for command in answer["answer"]["units"].get("commands", ()):
            name = command["name"]
            if verbs[name] is None:
                assert reads_the_same(before.get(name), units_of(new, PATH)[name], set(ours["files"])), name
                spared += 1
            else:
                assert verbs[name] == command["command"], name
        seen.update(name for name, value in {**ours, **ours["in_place"]}.items() if value)
    assert spared
    assert min(seen[name] for name in (*ours["in_place"], *ours)) > number // 50, seen


# Refusals


def _is_tolerated(error: Osc) -> bool:
    """Fields that Gardener's validation refuses, and gardenlet writes: an empty file, and no name or purpose."""
    field, is_missing = error["field"], error["type"] == "FieldValueRequired"
    return field.startswith("metadata.") or (is_missing and field.endswith(("inline.data", "spec.purpose")))


@pytest.mark.parametrize("number", [FEW, MANY])
def test_what_gardener_refuses_is_refused(number: int, gardener: GoProgram) -> None:
    random, refused = Random(SEED + 2), Counter[str]()
    for _ in range(number):
        osc = configuration(random)
        osc["metadata"] = {"name": "pool", "namespace": "shoot"}
        osc["spec"]["purpose"] = random.choice(("reconcile", "reconcile", "provision", "other"))
        osc, place = falsified(random, osc) if random.random() < 0.7 else (osc, "")
        answer = gardener.ask(op="validate", text=text_of(osc).decode())
        try:
            found = problems(decode(text_of(osc)))
        except OscError as error:
            found = [str(error)]
        errors = [each for each in answer.get("answer", ()) if not _is_tolerated(each)]
        if errors or "error" in answer:
            refused[place.rpartition(".")[2]] += 1
            assert found, f"{place}: {errors or answer}"
        else:
            assert not [each for each in found if not any(known in each for known in OURS)], f"{place}: {found}"
    assert len(refused) > 10, refused


OURS = (
    "is not absolute",
    "is no name of a unit",
    "is no name of a file",
    "is more than octal",
    "is no quantity",
    "is no version",
    "has another scheme",
    "is there 2 times",
    "is not valid base64",
    "/var/lib/kubelet/config/kubelet",
    "is of kind",
)
"""Rules that Gardener's validation does not have: a node could not act on such a configuration."""


def falsified(random: Random, osc: Osc) -> tuple[Osc, str]:
    """A copy with one text that may be none of its kind."""
    found = copy.deepcopy(osc)
    places = [each for each in _places(found, "") if isinstance(each[0][each[1]], str)]
    holder, key, place = random.choice(places)
    holder[key] = random.choice(
        ("", "a b", "A", "docker.io:080", "ftp://x", "x:1", "..", "/a/../b", "-1", "push", "b64")
    )
    return found, place
