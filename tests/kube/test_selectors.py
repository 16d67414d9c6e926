"""Selectors: the grammar and meaning of API servers. The worked cases were compared with k8s.io/apimachinery 0.34."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.kube.selectors import (
    MAX_TERMS,
    FieldRequirement,
    FieldSelector,
    LabelRequirement,
    LabelSelector,
    Operator,
    SelectorError,
)

KEYS = st.sampled_from(["a", "b", "in", "notin", "example.com/x", "A_b.c-d"])
VALUES = st.sampled_from(["", "1", "2", "3", "in", "x.y_z"])
LABELS = st.dictionaries(KEYS, VALUES)


@st.composite
def requirements(draw: st.DrawFn) -> LabelRequirement:
    operator = draw(st.sampled_from(list(Operator)))
    values: tuple[str, ...] = ()
    if operator in (Operator.IN, Operator.NOT_IN):
        values = tuple(sorted(draw(st.sets(VALUES, min_size=1, max_size=3))))
    elif operator in (Operator.ABOVE, Operator.BELOW):
        values = (str(draw(st.integers(0, 5))),)
    return LabelRequirement(draw(KEYS), operator, values)


SELECTORS = st.lists(requirements(), max_size=5).map(LabelSelector)


@given(SELECTORS)
def test_canonical_text_parses_to_the_same_selector(selector: LabelSelector) -> None:
    assert LabelSelector.parse(str(selector)) == selector


@given(SELECTORS, LABELS)
def test_a_selector_is_the_conjunction_of_its_requirements(selector: LabelSelector, labels: dict[str, str]) -> None:
    assert selector.matches(labels) == all(part.matches(labels) for part in selector.requirements)


@given(SELECTORS.filter(lambda found: not {Operator.ABOVE, Operator.BELOW} & {p.operator for p in found.requirements}))
def test_a_label_selector_object_selects_the_same(selector: LabelSelector) -> None:
    again = LabelSelector.from_object(selector.to_object())
    assert again is not None
    assert again == selector


@given(KEYS, st.sets(VALUES, min_size=1), LABELS)
def test_notin_is_the_opposite_of_in_and_absent_of_exists(key: str, values: set[str], labels: dict[str, str]) -> None:
    listed = ",".join(values)
    assert LabelSelector.parse(f"{key} in ({listed})").matches(labels) != LabelSelector.parse(
        f"{key} notin ({listed})"
    ).matches(labels)
    assert LabelSelector.parse(key).matches(labels) != LabelSelector.parse(f"!{key}").matches(labels)


@given(st.text(alphabet="ab1=!(),<> in-/.\té", max_size=30))
def test_any_text_parses_or_is_refused_with_a_selector_error(text: str) -> None:
    try:
        selector = LabelSelector.parse(text)
    except SelectorError:
        return
    assert LabelSelector.parse(str(selector)) == selector


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("", ""),
        (" b , a == 1 ", "a=1,b"),
        ("a in (1)", "a=1"),
        ("x in (foo,,baz),y,z notin ()", "x in (,baz,foo),y,z!="),
        ("in in (in,notin)", "in in (in,notin)"),
        ("a=", "a="),
        ("!a,b!=c,n>1,m<007", "!a,b!=c,m<007,n>1"),
        ("a=1,", None),
        (",a", None),
        ("a b", None),
        ("a=b c", None),
        ("a in b", None),
        ("a in (b", None),
        ("a in (b c)", None),
        ("a!", None),
        ("a=1!", None),
        ("!a=1", None),
        ("-a", None),
        ("a/b/c", None),
        ("a=@", None),
        ("a=" + "x" * 64, None),
        ("n>x", None),
        ("n>9223372036854775808", None),
    ],
)
def test_label_selector_texts(text: str, canonical: str | None) -> None:
    if canonical is None:
        with pytest.raises(SelectorError):
            LabelSelector.parse(text)
    else:
        assert str(LabelSelector.parse(text)) == canonical


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=b!", "found '!', expected: ',' or 'end of string'"),
        ("a=b,", "found '', expected: identifier after ','"),
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
    ],
)
def test_errors_are_worded_as_by_api_servers(text: str, message: str) -> None:
    with pytest.raises(SelectorError) as caught:
        LabelSelector.parse(text)
    assert str(caught.value) == message


def test_a_label_selector_object_that_is_absent_matches_nothing_and_an_empty_one_everything() -> None:
    assert LabelSelector.from_object(None) is None
    everything = LabelSelector.from_object({})
    assert everything is not None
    assert not everything
    assert everything.matches(None)


@pytest.mark.parametrize(
    "expression",
    [
        {"key": "a", "operator": "Gt", "values": ["1"]},
        {"key": "a", "operator": "in", "values": ["1"]},
        {"key": "a", "operator": "In"},
        {"key": "a", "operator": "Exists", "values": ["1"]},
        {"operator": "Exists"},
        {"key": "-", "operator": "Exists"},
        None,
    ],
)
def test_a_broken_match_expression_is_refused(expression: object) -> None:
    with pytest.raises(SelectorError):
        LabelSelector.from_object({"matchExpressions": [expression]})


def test_selectors_of_thousands_of_terms_are_refused() -> None:
    LabelSelector.parse(",".join(f"a{index}" for index in range(MAX_TERMS)))
    for text in (",".join(["a"] * (MAX_TERMS + 1)), f"a in ({','.join(['b'] * MAX_TERMS)})"):
        with pytest.raises(SelectorError, match=str(MAX_TERMS)):
            LabelSelector.parse(text)
    with pytest.raises(SelectorError, match=str(MAX_TERMS)):
        FieldSelector.parse(",".join(["a=b"] * (MAX_TERMS + 1)))


FIELD_TEXT = st.text(alphabet="ab.\\,=!é \n", max_size=8)


@given(st.lists(st.builds(FieldRequirement, st.sampled_from(["a", "b.c"]), FIELD_TEXT, st.booleans()), max_size=4))
def test_field_values_survive_escaping(parts: list[FieldRequirement]) -> None:
    selector = FieldSelector(parts)
    assert FieldSelector.parse(str(selector)) == selector


@given(st.text(alphabet="ab.\\,=!é ", max_size=30))
def test_any_field_selector_text_parses_or_is_refused(text: str) -> None:
    try:
        selector = FieldSelector.parse(text)
    except SelectorError:
        return
    assert FieldSelector.parse(str(selector)) == selector


def test_field_selectors_compare_whole_values_and_take_absent_for_empty() -> None:
    selector = FieldSelector.parse(r"metadata.name==a\,b,status.phase!=Running")
    assert selector.matches({"metadata.name": "a,b"})
    assert not selector.matches({"metadata.name": "a,b", "status.phase": "Running"})
    assert selector.required("metadata.name") == "a,b"
    assert selector.required("status.phase") is None
    assert selector.fields == {"metadata.name", "status.phase"}
    assert FieldSelector.parse("a=").matches({})
    assert not FieldSelector.parse("")


@pytest.mark.parametrize("text", ["a", "a=b\\", r"a=\x", "a=b=c", "a===b"])
def test_broken_field_selectors_are_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        FieldSelector.parse(text)
