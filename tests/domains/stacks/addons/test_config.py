"""clusteraddon.yaml: what is read, and what is refused with the place in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from hortus.domains.stacks.addons.config import AddonConfigError, StageAction, parse_config


def test_the_files_of_upstream_stacks_are_read(upstream: Path) -> None:
    for name, charts in (("docker/scs", 2), ("openstack/scs2", 4)):
        config = parse_config((upstream / "cso" / "stacks" / name / "clusteraddon.yaml").read_bytes())
        for hook in ("AfterControlPlaneInitialized", "BeforeClusterUpgrade"):
            assert len(config.of(hook)) == charts
        assert len(config.applied_charts("BeforeClusterUpgrade")) == charts


def test_any_action_but_apply_deletes_and_unknown_hooks_are_kept() -> None:
    config = parse_config(b"addonStages:\n  name:\n  - {name: a}\n  Other:\n  - {name: b, action: remove}\n")
    assert [stage.action for stage in config.of("name")] == [StageAction.APPLY]
    assert [stage.action for stage in config.of("Other")] == [StageAction.DELETE]
    assert config.of("BeforeClusterUpgrade") == ()


@pytest.mark.parametrize("text", ["", "addonStages:\n", "addonStages: {BeforeClusterUpgrade: }\n", "other: 1\n"])
def test_a_file_without_stages_has_none(text: str) -> None:
    assert parse_config(text.encode()).of("BeforeClusterUpgrade") == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[", "clusteraddon.yaml: line"),
        ("- a\n", "Expected `object`"),
        ("addonStages: {A: [{}]}", "name"),
        ("addonStages: {A: [{name: ../b}]}", r"addonStages\.A\[0\]\.name: '\.\./b' is no folder"),
        ("addonStages: {A: [{name: ''}]}", r"addonStages\.A\[0\]\.name"),
        (
            "addonStages: {A: [{name: a, waitForPreCondition: {conditions: x, timeout: soon}}]}",
            r"waitForPreCondition\.timeout",
        ),
        ("addonStages: {A: [{name: a, waitForPreCondition: {conditions: x, timeout: -1s}}]}", "longer than 0s"),
        (
            "addonStages: {A: [{name: a, waitForPostCondition: {conditions: x, objects: "
            "[{key: a-b, apiVersion: v1, kind: Pod, name: p}]}}]}",
            r"waitForPostCondition\.objects\[0\]\.key: 'a-b' must be the name of a variable",
        ),
    ],
)
def test_a_bad_file_names_the_field(text: str, said: str) -> None:
    with pytest.raises(AddonConfigError, match=said):
        parse_config(text.encode())
