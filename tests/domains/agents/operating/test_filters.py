"""The filter of changes of owned objects, next to the rule of the Go operator."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.domains.agents.operating.filters import changed_by_others, ownership_of
from hortus.engine import Change
from hortus.kube.objects import Object, ObjectKey, format_time
from hortus.schema.merge import MergeSchema, apply, update

US = "instana-agent-operator"
KEY = ObjectKey("monitoring", "one")
SCHEMA = MergeSchema.compile(
    {
        "type": "object",
        "properties": {
            "data": {"type": "object", "additionalProperties": {"type": "string"}},
            "status": {"type": "object", "additionalProperties": {"type": "string"}},
        },
    }
)
passes = changed_by_others(US)


def changed(old: Object | None, new: Object | None) -> bool:
    return passes(Change(KEY, old, new))


def written(*entries: tuple[str, str, int, dict[str, Any]], **parts: Any) -> Object:
    """An object that these managers wrote: manager, operation, seconds, fields."""
    fields = [
        {"manager": manager, "operation": operation, "time": format_time(at), "fieldsV1": fields}
        for manager, operation, at, fields in entries
    ]
    return {"metadata": {"name": "one", "managedFields": fields}, **parts}


OURS = (US, "Apply", 10, {"f:data": {"f:a": {}}})


def test_creations_do_not_pass_and_deletions_do() -> None:
    assert not changed(None, written(OURS))
    assert changed(written(OURS), None)


def test_a_write_of_our_own_does_not_pass() -> None:
    assert not changed(written(OURS), written((US, "Apply", 11, {"f:data": {"f:b": {}}})))


def test_our_own_write_that_takes_a_field_by_force_does_not_pass() -> None:
    assert not changed(written(OURS, ("kubectl", "Update", 10, {"f:data": {}})), written((US, "Apply", 12, {})))


def test_a_write_by_another_manager_passes() -> None:
    assert changed(written(OURS), written(OURS, ("kubectl", "Update", 11, {})))


def test_a_write_by_others_in_the_second_of_our_own_passes() -> None:
    """The Go operator compares times, and misses it."""
    assert changed(written(OURS), written(OURS, ("kubectl", "Update", 10, {})))
    assert changed(written(OURS), written((US, "Apply", 10, {})))


def test_a_status_passes_whoever_wrote_it() -> None:
    controller = ("kube-controller-manager", "Update", 11, {})
    assert changed(written(OURS, controller, status={"a": 1}), written(OURS, controller, status={"a": 2}))


def test_an_object_that_lost_our_ownership_passes() -> None:
    assert changed(written(OURS), written())


def test_the_cache_keeps_of_others_who_wrote_when() -> None:
    kept = ownership_of(US)(written(OURS, ("kubectl", "Update", 11, {"f:data": {"f:c": {}}})))
    ours, other = kept["metadata"]["managedFields"]
    assert ours["fieldsV1"] == {"f:data": {"f:a": {}}}
    assert other == {"manager": "kubectl", "operation": "Update", "time": format_time(11)}
    assert ownership_of(US) is ownership_of(US)


def go_rule(new: Object) -> bool:
    """The rule of the Go operator: it has no entry, or another's is later than its own."""
    entries = new["metadata"].get("managedFields") or ()
    ours = [entry.get("time", "") for entry in entries if entry["manager"] == US]
    return not ours or any(entry.get("time", "") > max(ours) for entry in entries if entry["manager"] != US)


VALUES = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["1", "2"]), min_size=1)
WRITES = st.lists(
    st.one_of(
        st.tuples(st.just(US), st.just("data"), VALUES),
        st.tuples(st.sampled_from(["kubectl", "controller"]), st.sampled_from(["data", "status"]), VALUES),
    ),
    min_size=1,
    max_size=8,
)


def after(live: Object, manager: str, field: str, values: dict[str, str], at: int) -> Object:
    now = 1_700_000_000.0 + at
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, field: values}
    if manager == US:
        return apply(live, body, manager=manager, api_version="v1", now=now, schema=SCHEMA, force=True)
    new = {**live, field: {**live.get(field, {}), **values}}
    entries = update(live, new, manager=manager, api_version="v1", now=now, schema=SCHEMA)
    return {**new, "metadata": {**new["metadata"], "managedFields": entries}}


@settings(deadline=None, max_examples=150)
@given(VALUES, WRITES)
def test_it_passes_what_the_go_operators_rule_passes_and_no_write_of_our_own(
    first: dict[str, str], writes: list[tuple[str, str, dict[str, str]]]
) -> None:
    live = after({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}}, US, "data", first, 0)
    applied = first
    for second, (manager, field, values) in enumerate(writes, start=1):
        new = after(live, manager, field, values, second)
        if new == live:
            continue  # no event
        found = changed(ownership_of(US)(_copy(live)), ownership_of(US)(_copy(new)))
        if manager != US:
            assert found
            assert go_rule(new)
        else:
            # A field that is given up and stays, since others have it, looks like one that was taken.
            assert not found or applied.keys() - values.keys()
            applied = values
        live = new


def _copy(obj: Object) -> Object:
    return {**obj, "metadata": dict(obj["metadata"])}
