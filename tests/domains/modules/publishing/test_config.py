"""Module-configs: modulectl's keys, all problems at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.domains.modules.publishing.config import CheckedConfig, ConfigError, ModuleConfig, read_config
from hortus.kube import yaml

LEAST = {
    "name": "kyma-project.io/module/hello",
    "version": "1.0.3",
    "manifest": "manifest.yaml",
    "repository": "https://example.com/hello",
    "documentation": "https://example.com/hello/README.md",
    "team": "acme/hello",
    "icons": [{"name": "module-icon", "link": "https://example.com/logo.png"}],
}


def checked(*, strict: bool = False, **changed: object) -> CheckedConfig:
    return read_config(yaml.dump(LEAST | changed).encode(), "module-config.yaml", strict=strict)


def config(**changed: object) -> ModuleConfig:
    return checked(**changed).config


def problems(**changed: object) -> tuple[str, ...]:
    with pytest.raises(ConfigError) as caught:
        checked(**changed)
    return caught.value.problems


def test_valid_configs_of_modulectl_are_accepted(upstream: Path) -> None:
    """Contract 4.2: modulectl's own examples."""
    files = sorted((upstream / "klm" / "modulectl" / "moduleconfig" / "valid").glob("*.yaml"))
    assert len(files) >= 9
    for file in files:
        assert read_config(file.read_bytes(), file.name).config.module == "template-operator"


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("duplicate-icons", "icons[1].name"),
        ("missing-manifest", "manifest"),
        ("missing-name", "name"),
        ("missing-team", "team"),
        ("missing-version", "version"),
        ("non-https-repository", "repository"),
        ("resource-without-link", "resources[0].link"),
    ],
)
def test_invalid_configs_of_modulectl_are_refused_by_key(upstream: Path, name: str, key: str) -> None:
    """Contract 4.2: modulectl's own examples, each with one problem."""
    file = upstream / "klm" / "modulectl" / "moduleconfig" / "invalid" / f"{name}.yaml"
    with pytest.raises(ConfigError) as caught:
        read_config(file.read_bytes(), file.name)
    (problem,) = caught.value.problems
    assert problem.startswith(f"{key}: ")
    assert str(caught.value).startswith(f"{file.name}: ")


def test_the_config_of_the_sample_module_is_accepted_with_warnings(upstream: Path) -> None:
    """Contract 4.2: channel, mandatory and namespace are ignored, security is accepted and unused."""
    file = upstream / "klm" / "template-operator" / "module-config.yaml"
    found = read_config(file.read_bytes(), file.name)
    assert [one.split(": ")[1] for one in found.warnings] == ["channel", "security"]


def test_all_problems_come_at_once() -> None:
    assert len(problems(version="v1", repository="http://x", manifest="/etc/m.yaml", documentation=None)) == 4


@pytest.mark.parametrize("manifest", ["/m.yaml", "C:\\m.yaml", "http://example.com/m.yaml", "ftp://example.com/m.yaml"])
def test_a_manifest_is_an_https_address_or_a_relative_path(manifest: str) -> None:
    """Contract 4.2: absolute paths are refused."""
    assert problems(manifest=manifest)[0].startswith("manifest: ")


@pytest.mark.parametrize("version", ["v1.2.3", "1.2", "1.2.3.4", "01.2.3", "latest", "1.2.3-"])
def test_a_version_is_strictly_semantic(version: str) -> None:
    assert problems(version=version)[0].startswith(f"version: '{version}'")


def test_a_version_that_yaml_reads_as_a_number_is_named() -> None:
    assert problems(version=1.2) == ("version: must be a text, and is a number",)


@pytest.mark.parametrize("name", ["hello", "Kyma-project.io/module/hello", "kyma-project.io", "kyma-project.io/Hello"])
def test_a_name_is_that_of_a_component(name: str) -> None:
    assert problems(name=name)[0].startswith(f"name: '{name}'")


def test_a_name_has_255_characters_at_most() -> None:
    assert problems(name="kyma-project.io/" + "a" * 240)[0] == "name: has 256 characters; 255 are allowed"


def test_a_team_is_needed_unless_nothing_is_scanned() -> None:
    assert problems(team=None)[0].startswith("team: ")
    assert not config(team=None, securityScanEnabled=False).security_scan_enabled


def test_links_come_as_a_list_or_as_a_map() -> None:
    """Contract 4.2: icons and resources accept both."""
    listed = config(resources=[{"name": "a", "link": "https://a"}, {"name": "b", "link": "https://b"}])
    assert config(resources={"a": "https://a", "b": "https://b"}).resources == listed.resources


@pytest.mark.parametrize("key", ["icons", "resources"])
def test_a_link_is_https_and_its_name_is_there_once(key: str) -> None:
    twice = [{"name": "a", "link": "https://a"}, {"name": "a", "link": "http://a"}]
    assert [one.partition(":")[0] for one in problems(**{key: twice})] == [f"{key}[1].name", f"{key}[1].link"]


def test_icons_are_not_empty() -> None:
    assert problems(icons=[]) == ("icons: is missing; give at least one icon with name and link",)


def test_a_name_or_version_that_the_crd_refuses_is_a_warning_unless_strict() -> None:
    found = checked(version="1.0.0-rc.1")
    assert "refused by the ModuleTemplate's CRD" in found.warnings[0]
    with pytest.raises(ConfigError, match="refused by the ModuleTemplate's CRD"):
        checked(version="1.0.0-rc.1", strict=True)


def test_dependencies_are_names_with_ranges() -> None:
    found = config(dependencies=[{"module": "istio", "versions": ">=1.2 <2"}, {"module": "nats"}])
    assert [str(one) for one in found.dependencies] == ["istio (>=1.2 <2)", "nats"]
    assert "dependencies[0].versions" in problems(dependencies=[{"module": "istio", "versions": "new"}])[0]
    assert "needs itself" in problems(dependencies=[{"module": "hello"}])[0]


def test_a_yaml_bomb_is_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    with pytest.raises(ConfigError, match=r"bomb\.yaml"):
        read_config("\n".join(lines).encode(), "bomb.yaml")


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*LEAST, "resources", "manager", "dependencies", "labels"]), _VALUES))
def test_any_document_is_read_or_refused(changed: dict[str, object]) -> None:
    try:
        checked(**changed)
    except ConfigError as error:
        assert error.problems
