"""The tables and edits of `hortus module`, from values to values."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.domains.modules.kyma.documents import kyma, release, template

from hortus.domains.modules.names import MANAGED_BY_KYMA, CustomResourcePolicy, Label
from hortus.domains.modules.types import Kyma, ModuleTemplate
from hortus.domains.modules.using.editing import ModuleNotListed, entry_of, listing, unlisting, unmanaging
from hortus.domains.modules.using.installed import installed, problems, state_of
from hortus.domains.modules.using.offers import offers
from hortus.kube.patches import apply_json_patch
from hortus.schema import encode

CREATE, IGNORE = CustomResourcePolicy.CREATE_AND_DELETE, CustomResourcePolicy.IGNORE


def copied(name: str, version: str) -> ModuleTemplate:
    return template(name, version, labels={Label.MANAGED_BY: MANAGED_BY_KYMA})


def test_offers_are_the_catalogs_then_community_modules_then_the_remote_list() -> None:
    found = offers(
        [
            release("nats", {"regular": "1.0.0", "fast": "2.0.0", "old": "0.1.0"}),
            release("istio", {"regular": "1.0.0"}),
            release("warden", None, mandatory={"version": "1.0.0"}),
        ],
        [copied("nats", "1.0.0"), copied("nats", "2.0.0"), template("cap-operator", "0.5.0")],
        [template("cap-operator", "0.10.0"), template("cap-operator", "0.9.0")],
    )
    assert [offer.row for offer in found] == [
        ("nats", "1.0.0(regular), 2.0.0(fast)", "kyma"),
        ("cap-operator", "0.5.0", "kcp-system/cap-operator-0.5.0"),
        ("cap-operator", "0.9.0, 0.10.0", "community"),
    ]
    assert found[0].summary() == {
        "name": "nats",
        "availableVersions": "1.0.0(regular), 2.0.0(fast)",
        "origin": "kyma",
    }


def test_the_list_joins_spec_and_status() -> None:
    found = installed(
        kyma(
            {"name": "istio", "customResourcePolicy": "Ignore"},
            {"name": "nats", "channel": "fast", "managed": False},
            installed=[
                {"name": "istio", "state": "Ready", "version": "1.0.0", "channel": "regular"},
                {"name": "logs", "state": "Deleting", "version": "2.0.0", "channel": "regular", "message": "waits"},
            ],
        ),
        {"istio": "Ready", "logs": "NotRunning"},
    )
    assert [row.row for row in found] == [
        ("istio", "1.0.0(regular)", "Ignore", "true", "Ready", "Ready"),
        ("logs", "2.0.0(regular)", "CreateAndDelete", "true", "NotRunning", "Deleting"),
        ("nats", "(fast)", "CreateAndDelete", "false", "Unknown", "Processing"),
    ]
    assert found[0].summary() == {
        "name": "istio",
        "version": "1.0.0(regular)",
        "crPolicy": "Ignore",
        "managed": "true",
        "moduleStatus": "Ready",
        "installationStatus": "Ready",
    }
    assert problems(found) == ["logs: Deleting: waits"]


@pytest.mark.parametrize(
    ("resource", "state"),
    [
        (None, "NotRunning"),
        ({}, "Unknown"),
        ({"status": {}}, "Unknown"),
        ({"status": {"state": "Ready"}}, "Ready"),
        ({"status": "hostile"}, "Unknown"),
    ],
)
def test_the_state_of_a_resource_is_that_of_its_status(resource: dict[str, Any] | None, state: str) -> None:
    assert state_of(resource) == state


def edited(before: Kyma, patch: list[dict[str, Any]]) -> Kyma:
    document = encode(before)
    document["metadata"]["resourceVersion"] = before.metadata.resource_version
    return msgspec.convert(apply_json_patch(document, patch), type=Kyma)


NAMES = st.lists(st.sampled_from(["istio", "nats", "logs", "warden"]), unique=True, max_size=4)


@given(NAMES, st.sampled_from(["istio", "nats"]), st.sampled_from(["", "fast"]), st.sampled_from([CREATE, IGNORE]))
def test_an_edit_changes_the_entry_of_its_module_alone(
    names: list[str], name: str, channel: str, policy: CustomResourcePolicy
) -> None:
    before = kyma(*names)
    after = edited(before, listing(before, name, channel=channel, policy=policy))
    entry = entry_of(after, name)
    assert (entry.channel or "", entry.custom_resource_policy, entry.managed) == (channel, policy.value, True)
    others = [module for module in before.spec.modules if module.name != name]
    assert [module for module in after.spec.modules if module.name != name] == others
    released = edited(after, unmanaging(after, name))
    assert (entry_of(released, name).managed, entry_of(released, name).custom_resource_policy) == (False, "Ignore")
    assert list(edited(released, unlisting(released, name)).spec.modules) == others


def test_an_edit_of_a_list_that_moved_meanwhile_fails() -> None:
    patch = unlisting(kyma("istio", "nats"), "nats")
    with pytest.raises(Exception, match="test"):
        edited(kyma("logs", "istio"), patch)


def test_a_module_that_is_not_listed_is_answered_with_those_that_are() -> None:
    for edit in (unlisting, unmanaging):
        with pytest.raises(ModuleNotListed, match="nats is not in the list of Kyma default-id; listed are: istio"):
            edit(kyma("istio"), "nats")
