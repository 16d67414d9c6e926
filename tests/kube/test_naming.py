"""Names. The wording was compared with k8s.io/apimachinery 0.34."""

from __future__ import annotations

import pytest

from hortus.kube import naming


@pytest.mark.parametrize("text", ["a", "a-b", "1", "a" * 63])
def test_dns_labels(text: str) -> None:
    assert naming.dns_label(text) == []


@pytest.mark.parametrize("text", ["", "A", "-a", "a-", "a.b", "a" * 64, "é", "a\n"])
def test_texts_that_are_no_dns_labels(text: str) -> None:
    assert naming.dns_label(text)


def test_a_label_with_dots_gets_the_message_about_dots() -> None:
    assert naming.dns_label("a.b") == ["must not contain dots"]


@pytest.mark.parametrize("text", ["a.b-c.1", "a" * 253])
def test_dns_subdomains(text: str) -> None:
    assert naming.dns_subdomain(text) == []


@pytest.mark.parametrize("text", ["", "a..b", ".a", "a.", "a_b", "a" * 254])
def test_texts_that_are_no_dns_subdomains(text: str) -> None:
    assert naming.dns_subdomain(text)


def test_1035_labels_begin_with_a_letter() -> None:
    assert naming.dns_1035_label("a1") == []
    assert naming.dns_1035_label("1a")


@pytest.mark.parametrize("text", ["a", "A_b.c", "example.com/Name", "a" * 63])
def test_qualified_names(text: str) -> None:
    assert naming.qualified_name(text) == []


@pytest.mark.parametrize("text", ["", "/a", "a/", "a/b/c", "Ex.com/a", "-a", "a" * 64])
def test_texts_that_are_no_qualified_names(text: str) -> None:
    assert naming.qualified_name(text)


def test_label_values_may_be_empty() -> None:
    assert naming.label_value("") == []
    assert naming.label_value("a b")
    assert naming.label_value("x" * 64)[0] == "must be no more than 63 characters"


def test_path_segments_stay_in_their_place() -> None:
    assert naming.path_segment("system:x y") == []
    assert naming.path_segment("..") == ["may not be '..'"]
    assert naming.path_segment("a/%2e") == ["may not contain '/'", "may not contain '%'"]
