"""Resolution of modules (docs/modules/contract.md, 2.1.3 and 2.1.7)."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from tests.domains.modules.kyma.documents import Shelf, kyma, module, release, template

from hortus.domains.modules.kyma.resolution import (
    Catalog,
    ModuleRefusal,
    ModuleTerms,
    RefusedModule,
    ResolvedModule,
    removed,
    resolve,
)
from hortus.domains.modules.kyma.windows import MaintenancePolicy
from hortus.domains.modules.names import Label
from hortus.domains.modules.types import Kyma

NOW = 1_800_000_000.0


def resolved(found: Kyma, catalog: Catalog, terms: ModuleTerms = ModuleTerms()) -> ResolvedModule:  # noqa: B008
    (one,) = resolve(found, catalog, terms, NOW)
    assert isinstance(one, ResolvedModule), one
    return one


def refused(found: Kyma, catalog: Catalog, terms: ModuleTerms = ModuleTerms()) -> RefusedModule:  # noqa: B008
    (one,) = resolve(found, catalog, terms, NOW)
    assert isinstance(one, RefusedModule), one
    return one


def installed(version: str, **fields: Any) -> dict[str, Any]:
    return {
        "name": "istio",
        "state": "Ready",
        "version": version,
        "template": {"kind": "ModuleTemplate", "metadata": {"name": f"istio-{version}", "generation": 1}},
        **fields,
    }


def test_the_modules_own_channel_comes_before_the_kymas() -> None:
    catalog = module("istio", "1.0.0", "2.0.0", channels={"regular": "1.0.0", "fast": "2.0.0"})
    assert resolved(kyma("istio"), catalog).version == "1.0.0"
    assert resolved(kyma("istio", channel="fast"), catalog).version == "2.0.0"
    found = resolved(kyma({"name": "istio", "channel": "fast"}), catalog)
    assert (found.channel, found.version, found.component) == ("fast", "2.0.0", "kyma-project.io/module/istio")
    assert found.template.metadata.name == "istio-2.0.0"


@pytest.mark.parametrize("channel", ["none", "None"])
def test_the_channel_none_is_refused(channel: str) -> None:
    named = kyma("istio")
    # The CRD refuses capital letters, but the Kyma in the cluster is somebody else's object.
    named = msgspec.structs.replace(named, spec=msgspec.structs.replace(named.spec, channel=channel))
    found = refused(named, module("istio", "1.0.0"))
    assert found.refusal is ModuleRefusal.INVALID
    assert 'channel "none" is not allowed' in found.message


def test_a_module_without_a_release_is_refused() -> None:
    found = refused(kyma("istio"), Shelf())
    assert (found.refusal, found.message) == (
        ModuleRefusal.NO_RELEASE,
        "no ModuleReleaseMeta found for module istio",
    )


def test_a_channel_that_the_release_does_not_have_is_refused() -> None:
    found = refused(kyma("istio", channel="fast"), module("istio", "1.0.0"))
    assert found.refusal is ModuleRefusal.NO_VERSION
    assert found.message == "no versions found for channel fast of module istio; its channels are regular"
    found = refused(kyma("istio"), module("istio", channels={}))
    assert (found.refusal, found.message) == (ModuleRefusal.NO_VERSION, "no channels found for module istio")


def test_a_version_without_a_template_is_refused() -> None:
    found = refused(kyma("istio"), Shelf(release("istio", {"regular": "1.0.0"})))
    assert (found.refusal, "istio-1.0.0" in found.message) == (ModuleRefusal.NO_TEMPLATE, True)


def test_a_release_without_a_component_is_refused() -> None:
    catalog = Shelf(release("istio", {"regular": "1.0.0"}, ocmComponentName=None), template("istio", "1.0.0"))
    found = refused(kyma("istio"), catalog)
    assert (found.refusal, "spec.ocmComponentName" in found.message) == (ModuleRefusal.NO_COMPONENT, True)


@pytest.mark.parametrize("word", ["beta", "internal"])
def test_beta_and_internal_modules_are_for_kymas_with_the_same_label(word: str) -> None:
    label = {Label.BETA: "True"} if word == "beta" else {Label.INTERNAL: "True"}
    catalog = Shelf(release("istio", {"regular": "1.0.0"}), template("istio", "1.0.0", labels=label))
    found = refused(kyma("istio"), catalog)
    assert (found.refusal, found.message) == (ModuleRefusal.NOT_ALLOWED, f"module template not allowed: {word} module")
    assert resolved(kyma("istio", labels=label), catalog).version == "1.0.0"


def test_a_mandatory_template_cannot_be_listed() -> None:
    catalog = Shelf(release("istio", {"regular": "1.0.0"}), template("istio", "1.0.0", mandatory=True))
    found = refused(kyma("istio"), catalog)
    assert found.refusal is ModuleRefusal.MANDATORY
    assert found.message.startswith("no templates were found")


@pytest.mark.parametrize(
    ("listed", "selector", "allowed"),
    [
        (False, None, True),
        (False, {}, True),
        (False, {"matchLabels": {"team": "a"}}, False),
        (True, None, False),
        (True, {}, False),
        (True, {"matchLabels": {"team": "a"}}, True),
        (True, {"matchLabels": {"team": "b"}}, False),
    ],
)
def test_a_restricted_module_is_for_the_kymas_that_its_selector_matches(
    listed: bool, selector: dict[str, Any] | None, allowed: bool
) -> None:
    spec = {} if selector is None else {"kymaSelector": selector}
    catalog = Shelf(release("istio", {"regular": "1.0.0"}, **spec), template("istio", "1.0.0"))
    terms = ModuleTerms(restricted=frozenset(("istio",)) if listed else frozenset())
    (found,) = resolve(kyma("istio", labels={"team": "a"}), catalog, terms, NOW)
    assert isinstance(found, ResolvedModule) is allowed


@pytest.mark.parametrize(
    ("current", "wanted", "allowed"),
    [
        ("1.0.0", "1.0.0", True),
        ("1.0.0", "1.0.1", True),
        ("1.2.0", "1.1.9", False),
        ("2.0.0", "1.9.9", False),
        ("1.0.0", "1.0.0-rc", True),
        ("1.0.0-rc", "1.0.0-beta", True),
    ],
)
def test_downgrades_are_refused_by_the_three_numbers(current: str, wanted: str, allowed: bool) -> None:
    (found,) = resolve(kyma("istio", installed=[installed(current)]), module("istio", wanted), ModuleTerms(), NOW)
    assert isinstance(found, ResolvedModule) is allowed
    if isinstance(found, RefusedModule):
        assert found.refusal is ModuleRefusal.DOWNGRADE
        assert found.message.startswith("module template update not allowed: ignore channel skew")


def test_downgrades_are_followed_where_the_operator_allows_them() -> None:
    catalog, terms = module("istio", "1.1.9"), ModuleTerms(downgrades=True)
    (found,) = resolve(kyma("istio", installed=[installed("1.2.0")]), catalog, terms, NOW)
    assert isinstance(found, ResolvedModule)
    assert found.version == "1.1.9"


def test_a_module_that_was_never_installed_may_have_any_version() -> None:
    status = installed("2.0.0")
    del status["template"]
    assert resolved(kyma("istio", installed=[status]), module("istio", "1.0.0")).version == "1.0.0"


OPEN = MaintenancePolicy.read(
    json.dumps({"default": {"begin": "2000-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}}).encode(), minimum=0
)
LATER = MaintenancePolicy.read(
    json.dumps({"default": {"begin": "2099-01-01T00:00:00Z", "end": "2100-01-01T00:00:00Z"}}).encode(), minimum=0
)
NEVER = MaintenancePolicy.read(b"{}", minimum=0)


@pytest.mark.parametrize(
    ("policy", "refusal"),
    [
        (OPEN, None),
        (LATER, ModuleRefusal.WAITS_FOR_WINDOW),
        (NEVER, ModuleRefusal.WINDOW_UNKNOWN),
        (None, ModuleRefusal.WINDOW_UNKNOWN),
    ],
)
def test_an_upgrade_with_a_downtime_waits_for_a_window(
    policy: MaintenancePolicy | None, refusal: ModuleRefusal | None
) -> None:
    catalog = Shelf(release("istio", {"regular": "1.1.0"}), template("istio", "1.1.0", requiresDowntime=True))
    terms = ModuleTerms(windows=policy)
    (found,) = resolve(kyma("istio", installed=[installed("1.0.0")]), catalog, terms, NOW)
    assert (found.refusal if isinstance(found, RefusedModule) else None) is refusal
    for free in (
        kyma("istio"),
        kyma("istio", installed=[installed("1.1.0")]),
        kyma("istio", installed=[installed("1.0.0")], skipMaintenanceWindows=True),
    ):
        assert resolved(free, catalog, terms).version == "1.1.0"


def test_a_module_waits_for_those_that_it_needs() -> None:
    catalog = Shelf(
        release("istio", {"regular": "1.0.0"}),
        template("istio", "1.0.0", needs=[{"module": "nats", "versions": ">=2"}]),
    )
    found = refused(kyma("istio"), catalog)
    assert found.refusal is ModuleRefusal.WAITS_FOR_MODULES
    assert found.message == "waiting for modules: nats (>=2): not in the list of modules; add it"
    ready = {"name": "nats", "state": "Ready", "version": "2.0.0"}
    assert resolved(kyma("istio", installed=[ready]), catalog).version == "1.0.0"
    # An installed version stays when the other module goes.
    assert resolved(kyma("istio", installed=[installed("1.0.0")]), catalog).version == "1.0.0"


def test_modules_that_left_the_spec_are_the_removed_ones() -> None:
    found = kyma("nats", installed=[installed("1.0.0"), {"name": "nats", "state": "Ready"}])
    assert [status.name for status in removed(found)] == ["istio"]
