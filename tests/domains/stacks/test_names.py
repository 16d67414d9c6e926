"""Versions, and the names of releases, tags and ClusterClasses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.domains.stacks.names import (
    BadName,
    ReleaseName,
    StackVersion,
    latest,
    parse_class,
    parse_dash,
    parse_dot,
    parse_either,
    parse_minor,
    parse_tag,
    tag_of_class,
)

WORDS = st.text("abcsz019_", min_size=1, max_size=8)
VERSIONS = st.one_of(
    st.builds(StackVersion, st.integers(0, 99), st.just("stable"), st.just("")),
    st.builds(StackVersion, st.integers(0, 99), WORDS.filter(lambda word: word != "stable"), WORDS),
)
NAMES = st.builds(
    ReleaseName,
    st.sampled_from(["docker", "openstack"]),
    st.sampled_from(["ferrol", "scs2"]),
    st.tuples(st.integers(0, 9), st.integers(0, 99)),
    VERSIONS,
)


def release(version: str) -> ReleaseName:
    return parse_class(f"docker-ferrol-1-27-{version}")


@pytest.mark.parametrize("text", ["v1", "v0-sha.hipstsw", "v1-alpha.0", "v1-alpha.1"])
def test_versions_with_a_dot_are_read(text: str) -> None:
    assert parse_dot(text).dot == text


@pytest.mark.parametrize(
    "text",
    ["v1-alpha", "v1-alpha-1", "v1-alpha-1.0", "v1-alpha-1.0.0", "v1-alpha.", "v1.0-alpha.1", "1", "v1\n", "v\u0661"],
)
def test_other_texts_are_no_versions_with_a_dot(text: str) -> None:
    with pytest.raises(BadName, match="does not have the form"):
        parse_dot(text)


@pytest.mark.parametrize("number", ["9" * 19, "9" * 5000])
def test_a_number_that_no_integer_of_the_go_operator_holds_is_no_version(number: str) -> None:
    """Python refuses to read thousands of digits, with an error of its own."""
    for text in (f"docker-ferrol-1-27-v{number}", f"docker-ferrol-{number}-27-v1", f"docker-ferrol-1-27-v{number}-a-1"):
        assert parse_either(text) is None
    with pytest.raises(BadName):
        parse_minor(f"1.{number}")
    assert StackVersion(1, "alpha", number).order[:3] == (1, "alpha", False)


@pytest.mark.parametrize("text", ["v1", "v1-alpha-1", "v1-beta-3"])
def test_versions_with_dashes_are_read(text: str) -> None:
    assert parse_dash(text).dash == text


@pytest.mark.parametrize("text", ["v1-alpha.1", "v1-alpha", "v1-alpha-1-2", "v1-"])
def test_other_texts_are_no_versions_with_dashes(text: str) -> None:
    with pytest.raises(BadName, match=text):
        parse_dash(text)


@pytest.mark.parametrize(
    ("tag", "stem"),
    [
        ("openstack-ferrol-1-27-v2", "openstack-ferrol-1-27"),
        ("openstack-ferrol-1-27-v0-sha-a3baa3a", "openstack-ferrol-1-27"),
        ("docker-ferrol-1-26-v1-alpha-0", "docker-ferrol-1-26"),
    ],
)
def test_a_tag_is_cut_into_stem_and_version(tag: str, stem: str) -> None:
    assert parse_tag(tag).stem == stem
    assert parse_tag(tag).tag == tag


@pytest.mark.parametrize("tag", ["openstack-ferrol-1-27", "docker-ferrol-1.26", "docker--1-27-v1", "docker-x-1-b-v1"])
def test_a_tag_that_cannot_be_cut_is_named_in_the_error(tag: str) -> None:
    with pytest.raises(BadName, match=tag):
        parse_tag(tag)


def test_versions_of_a_spec_give_the_names_of_releases() -> None:
    made = [ReleaseName("docker", "ferrol", (1, 21), parse_dot(text)).tag for text in ("v1", "v2", "v3-alpha.0")]
    assert made == ["docker-ferrol-1-21-v1", "docker-ferrol-1-21-v2", "docker-ferrol-1-21-v3-alpha-0"]


@given(NAMES)
def test_both_notations_stand_for_one_release(name: ReleaseName) -> None:
    assert parse_tag(name.tag) == parse_class(name.class_name) == name
    assert parse_either(name.tag) == parse_either(name.class_name) == name
    assert tag_of_class(name.class_name) == name.tag


@given(st.lists(VERSIONS, max_size=8))
def test_versions_have_a_total_order(versions: list[StackVersion]) -> None:
    for one, other in zip(sorted(versions), sorted(versions)[1:], strict=False):
        assert one <= other
        assert not other < one


def test_patches_that_are_numbers_are_compared_as_numbers() -> None:
    assert parse_dot("v1-alpha.9") < parse_dot("v1-alpha.10") < parse_dot("v2-alpha.1")


@given(st.permutations([release("v1-alpha.9"), release("v1-alpha.10"), release("v1-alpha.2")]))
def test_the_latest_of_numbers_is_the_greatest(names: list[ReleaseName]) -> None:
    assert latest(names) == release("v1-alpha.10")


@given(st.permutations([release("v0-sha.zzz"), release("v0-sha.aaa"), release("v0-sha.mmm")]))
def test_the_latest_of_hashes_is_the_last_published(names: list[ReleaseName]) -> None:
    assert latest(names, {release("v0-sha.aaa"): 20.0, release("v0-sha.zzz"): 10.0}) == release("v0-sha.aaa")


@given(st.permutations([release("v1-alpha.9"), release("v1-alpha.10"), release("v1-sha.abc")]))
def test_the_latest_of_several_channels_does_not_depend_on_their_order(names: list[ReleaseName]) -> None:
    times = {release("v1-alpha.9"): 3.0, release("v1-sha.abc"): 2.0, release("v1-alpha.10"): 1.0}
    assert latest(names, times) == release("v1-sha.abc")


def test_there_is_no_latest_of_nothing() -> None:
    assert latest([]) is None


@pytest.mark.parametrize(("text", "stable", "custom"), [("v1", True, False), ("v0-sha.abc", False, True)])
def test_every_version_that_is_not_stable_is_custom(text: str, stable: bool, custom: bool) -> None:
    version = parse_dot(text)
    assert (version.in_channel("stable"), version.in_channel("custom")) == (stable, custom)


@pytest.mark.parametrize(("text", "minor"), [("1.27", (1, 27)), ("v1.27.3", (1, 27)), ("v1.31.0-rc.1", (1, 31))])
def test_the_minor_of_a_kubernetes_version_is_read(text: str, minor: tuple[int, int]) -> None:
    assert parse_minor(text) == minor


@pytest.mark.parametrize("text", ["", "1", "one.two"])
def test_a_text_that_is_no_kubernetes_version_is_named(text: str) -> None:
    with pytest.raises(BadName, match=repr(text)):
        parse_minor(text)
