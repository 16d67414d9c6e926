"""Random histories of applies and updates, judged by kube-apiserver's own libraries."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.oracles.programs import GoProgram
from tests.schema.merge.conftest import ORACLE
from tests.schema.merge.generators import NAMES, objects, schemas, values

from hortus.schema.merge import ApplyConflict, MergeError, MergeSchema, apply, compare, fields_of, update
from hortus.schema.merge.elements import SELF
from hortus.schema.merge.fieldset import (
    FieldSet,
    arranged,
    difference,
    intersection,
    leaves,
    members,
    parse_fields,
    path_text,
    recursive_difference,
    union,
)
from hortus.schema.merge.merging import merge
from hortus.schema.merge.pruning import named, remove
from hortus.schema.merge.types import _METADATA, type_of

pytestmark = [pytest.mark.oracle, pytest.mark.timeout(900)]

Object = dict[str, Any]
START = 1_577_836_800
"""2020-01-01T00:00:00Z; each step of a history takes a minute."""
MANAGERS = ("kubectl", "ada", "bert")


def whole(schema: Object) -> Object:
    """The schema of a kind with `spec` and `status` of these schemas."""
    return {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": _METADATA,
            "spec": schema,
            "status": schema,
        },
    }


def text(fields: FieldSet | None) -> str:
    return orjson.dumps(arranged(fields or {})).decode()


def wire(value: Any) -> Any:
    """The value as it comes back from Go, which knows no fraction that is zero."""
    return orjson.loads(orjson.dumps(value))


fieldsets: st.SearchStrategy[FieldSet] = st.deferred(
    lambda: st.dictionaries(
        st.sampled_from(
            [
                "f:a",
                "f:b",
                "f:",
                'k:{"id":"x"}',
                'k:{"port":80}',
                'k:{"port":443}',
                'v:"x"',
                "v:9",
                "v:10",
                "v:true",
                "v:false",
                "v:null",
                "v:1.5",
                "v:0.00001234",
                "v:1234567.5",
                "v:100000000000000000000000",
                'v:"a\\"<\\u0007é"',
                'v:["x",false,null,2.5,{"b":[]}]',
                'k:{"id":"x","port":80}',
                'k:{"id":"<&>","on":false,"size":0.5}',
                "i:2",
                "i:10",
            ]
        ),
        st.one_of(st.just({}), nodes),
        max_size=4,
    )
)
nodes: st.SearchStrategy[FieldSet] = st.builds(
    lambda below, member: {SELF: {}, **below} if member and below else below, fieldsets, st.booleans()
)


ODD = (
    *("v:true", "v:false", "v:null", "v:0", "v:-1", "v:10", "v:9", "v:1.5", "v:-0.5", "v:1000000", "v:1234567.5"),
    *("v:0.0001", "v:0.00001", "v:1e21", "v:123456789012345", "v:[]", "v:{}", "v:[1]", 'v:["a",[true,null]]'),
    *(
        'v:{"a":[{}]}',
        'v:""',
        'v:"plain"',
        'v:"q\\"\\\\"',
        'v:"<a>&"',
        'v:"\\n\\t\\u0001\\u007f"',
        'v:"é\U0001f600"',
    ),
    *(
        'v:"\\b\\f\\r"',
        'v:"\u2028"',
        'v:"\ue000"',
        'v:"\U000e0001"',
        'k:{"a":1}',
        'k:{"b":"x","a":true}',
        'k:{"a":{"x":null}}',
    ),
    *('k:{"a":1.5,"b":[false]}', "i:0", "i:2", "i:10", "f:", "f:a", "f:a.b/c", "f:é"),
)
"""Elements of every sort, and values that JSON, Go's source and Go's %v write differently."""


@pytest.mark.parametrize("element", ODD)
def test_an_element_is_spelled_and_shown_as_in_go(go: GoProgram, element: str) -> None:
    expected = go.ask(op="sets", left={element: {}}, right={})
    found = parse_fields({element: {}})
    assert text(found) == expected["left"]
    assert [path_text(path) for path in members(found)] == expected["paths"]


def test_elements_stand_in_the_order_of_go(go: GoProgram) -> None:
    expected = go.ask(op="sets", left={each: {} for each in ODD}, right={})
    assert text(parse_fields({each: {} for each in ODD})) == expected["left"]


@ORACLE
@given(left=fieldsets, right=fieldsets)
def test_sets_are_those_of_go(go: GoProgram, left: FieldSet, right: FieldSet) -> None:
    expected = go.ask(op="sets", left=left, right=right)
    left, right = parse_fields(left), parse_fields(right)
    assert {
        "left": text(left),
        "paths": [path_text(path) for path in members(left)],
        "union": text(union(left, right)),
        "intersection": text(intersection(left, right)),
        "difference": text(difference(left, right)),
        "recursiveDifference": text(recursive_difference(left, right)),
        "leaves": text(leaves(left)),
    } == expected


@ORACLE
@given(data=st.data())
def test_comparing_and_merging_is_that_of_go(go: GoProgram, data: st.DataObject) -> None:
    schema = whole(data.draw(schemas()))
    head = {"apiVersion": "hortus.io/v1", "kind": "Gizmo"}
    repeats = data.draw(st.booleans())
    left = head | {"spec": data.draw(values(schema["properties"]["spec"], repeats=True))}
    right = head | {"spec": data.draw(values(schema["properties"]["spec"], repeats=repeats))}
    expected = go.ask(op="typed", schema=schema, left=left, right=right)
    root = type_of(schema)
    found = compare(left, right, root)
    fields = fields_of(right, root)
    actual = {
        "added": text(found.added),
        "modified": text(found.modified),
        "removed": text(found.removed),
        "fields": text(fields),
        "named": text(named(fields, root)),
        "without": remove(right, intersection(leaves(fields), found.added), root),
    }
    if "merged" in expected:
        actual["merged"] = merge(left, right, root)
    assert actual == expected


class History:
    """The same writes here and in Go. Ours run first, so that later ones can build on what came out."""

    def __init__(self, schemas: list[Object | None]) -> None:
        self.schemas = schemas
        self.steps: list[Object] = []
        self.outcomes: list[Object] = []
        self.live: Object | None = None
        self._compiled = [MergeSchema.compile(schema) for schema in schemas]

    def write(self, **step: Any) -> None:
        now = START + 60 * len(self.steps)
        self.steps.append(step)
        try:
            live = self._written(step, now)
        except MergeError as error:
            self.outcomes.append({"error": failure(error)})
            return
        live = {**live, "metadata": {**(live.get("metadata") or {}), "uid": "u"}}
        self.live = live
        self.outcomes.append({"object": live})

    def _written(self, step: Object, now: float) -> Object:
        schema = self._compiled[step["schema"]]
        version, obj = step["apiVersion"], step["object"]
        live = self.live if self.live is None else {**self.live, "apiVersion": version}
        reset = step.get("reset")
        if step["verb"] == "apply":
            return apply(
                live,
                obj,
                manager=step["manager"],
                api_version=version,
                now=now,
                schema=schema,
                force=step["force"],
                subresource=step["subresource"],
                reset_fields=reset,
            )
        entries = update(
            live,
            obj,
            manager=step["manager"],
            api_version=version,
            now=now,
            schema=schema,
            subresource=step["subresource"],
            reset_fields=reset,
        )
        metadata = {key: value for key, value in (obj.get("metadata") or {}).items() if key != "managedFields"}
        return {**obj, "metadata": {**metadata, "managedFields": entries} if entries else metadata}


def readable(value: object) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


def failure(error: MergeError) -> Object:
    found: Object = {"message": error.message, "code": error.code}
    if isinstance(error, ApplyConflict):
        found["causes"] = error.causes()
    return found


def settled(outcome: Object) -> Object:
    """An outcome without what is left to chance in Go: the order of managers among causes, and of several problems."""
    error = outcome.get("error")
    if error is None:
        return outcome
    causes = sorted(error.get("causes") or [], key=lambda cause: (cause["message"], cause["field"]))
    message = error["message"]
    if not causes and ("\n" in message or "not declared" in message):
        message = message.partition(":")[0]
    return {"error": {"message": message, "code": error["code"], "causes": causes}}


def expect_same_as_go(go: GoProgram, history: History) -> None:
    expected = go.ask(op="history", schemas=history.schemas, steps=history.steps)["outcomes"]
    for number, (ours, theirs) in enumerate(zip(history.outcomes, expected, strict=True)):
        same = settled(wire(ours)) == settled(theirs)
        assert same, "\n".join(map(readable, (history.schemas, history.steps[: number + 1], ours, theirs)))


def metadata(data: st.DataObject) -> Object:
    found: Object = {"name": "x"}
    if data.draw(st.booleans()):
        found["labels"] = data.draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from(("1", "2")), max_size=2))
    if data.draw(st.integers(0, 2)) == 0:
        found["finalizers"] = data.draw(st.lists(st.sampled_from(("f/a", "f/b", "f/c")), unique=True, max_size=3))
    if data.draw(st.integers(0, 4)) == 0:
        found["ownerReferences"] = [{"uid": data.draw(st.sampled_from(("1", "2"))), "name": "o", "kind": "K"}]
    return found


def drawn(data: st.DataObject, schema: Object | None, version: str, *, repeats: bool) -> Object:
    obj: Object = {"apiVersion": version, "kind": "Gizmo", "metadata": metadata(data)}
    inner = {"x-kubernetes-preserve-unknown-fields": True, "type": "object"}
    if schema is not None:
        inner = schema["properties"]["spec"]
    for part in ("spec", "status"):
        if data.draw(st.integers(0, 3)) > 0:
            obj[part] = data.draw(values(inner, repeats=repeats))
    return obj


def play(history: History, data: st.DataObject, *, versions: tuple[str, ...], repeats: bool = True) -> None:
    for _ in range(data.draw(st.integers(2, 6))):
        number = data.draw(st.integers(0, len(history.schemas) - 1))
        schema = history.schemas[0]
        version = data.draw(st.sampled_from(versions))
        verb = data.draw(st.sampled_from(("apply", "apply", "update")))
        obj = drawn(data, schema, version, repeats=repeats and verb == "update")
        if verb == "apply" and data.draw(st.integers(0, 9)) == 0:
            obj["spec"] = data.draw(values(data.draw(objects(schemas(1)))))
        if verb == "update" and history.live is not None:
            obj = revised(data, history.live, obj)
        subresource = data.draw(st.sampled_from(("", "", "", "status")))
        history.write(
            verb=verb,
            manager=data.draw(st.sampled_from(MANAGERS)),
            apiVersion=version,
            object=obj,
            schema=number,
            force=data.draw(st.booleans()),
            subresource=subresource,
            reset=data.draw(st.sampled_from((None, None, {"f:status": {}}))),
        )


def revised(data: st.DataObject, live: Object, obj: Object) -> Object:
    """An object as a client writes it back: parts of the read object, perhaps with read or invented ownership."""
    kept = [part for part in ("spec", "status") if part in live and data.draw(st.booleans())]
    obj = obj | {part: live[part] for part in kept}
    ownership = data.draw(st.sampled_from(("absent", "absent", "read", "read", "reset", "emptied", "fewer", "broken")))
    entries = live["metadata"].get("managedFields", [])
    sent: dict[str, Any] = {
        "read": entries,
        "reset": [],
        "emptied": [{}],
        "fewer": entries[1:],
        "broken": [{"manager": "x", "operation": "Conquer", "apiVersion": "hortus.io/v1"}],
    }
    return obj if ownership == "absent" else obj | {"metadata": obj["metadata"] | {"managedFields": sent[ownership]}}


@ORACLE
@given(data=st.data())
def test_histories_end_as_in_go(go: GoProgram, data: st.DataObject) -> None:
    history = History([whole(data.draw(schemas()))])
    play(history, data, versions=("hortus.io/v1",))
    expect_same_as_go(go, history)


@ORACLE
@given(data=st.data())
def test_histories_over_versions_end_as_in_go(go: GoProgram, data: st.DataObject) -> None:
    history = History([whole(data.draw(objects(schemas(2))))])
    # Go cannot convert an object with repeated items to another version; here versions have the same fields anyway.
    play(history, data, versions=("hortus.io/v1", "hortus.io/v2"), repeats=False)
    expect_same_as_go(go, history)


@ORACLE
@given(data=st.data())
def test_histories_without_a_schema_end_as_in_go(go: GoProgram, data: st.DataObject) -> None:
    history = History([None])
    play(history, data, versions=("hortus.io/v1",))
    expect_same_as_go(go, history)


def made_atomic(data: st.DataObject, schema: Object) -> Object:
    """The schema after somebody declared some of its lists and maps atomic."""
    result = dict(schema)
    if schema.get("type") in ("array", "object") and data.draw(st.integers(0, 2)) == 0:
        result |= {f"x-kubernetes-{'list' if schema['type'] == 'array' else 'map'}-type": "atomic"}
        result.pop("x-kubernetes-list-map-keys", None)
    for part in ("items", "additionalProperties"):
        if part in schema:
            result[part] = made_atomic(data, schema[part])
    if "properties" in schema:
        result["properties"] = {name: made_atomic(data, inner) for name, inner in schema["properties"].items()}
    return result


@ORACLE
@given(data=st.data())
def test_histories_over_a_changed_schema_end_as_in_go(go: GoProgram, data: st.DataObject) -> None:
    inner = data.draw(objects(schemas(2)))
    history = History([whole(inner), whole(made_atomic(data, inner))])
    play(history, data, versions=("hortus.io/v1",))
    expect_same_as_go(go, history)


@ORACLE
@given(data=st.data())
def test_many_updaters_are_folded_as_in_go(go: GoProgram, data: st.DataObject) -> None:
    history = History([None])
    for number in range(data.draw(st.integers(11, 15))):
        version = data.draw(st.sampled_from(("hortus.io/v1", "hortus.io/v2")))
        spec = data.draw(st.dictionaries(st.sampled_from(NAMES), st.sampled_from((1, 2)), max_size=3))
        obj = {"apiVersion": version, "kind": "Gizmo", "metadata": {"name": "x"}, "spec": spec | {f"s{number}": 1}}
        earlier = history.live["spec"] if history.live is not None else {}
        obj["spec"] |= {key: value for key, value in earlier.items() if key.startswith("s")}
        common = {"apiVersion": version, "object": obj, "schema": 0, "force": True, "subresource": "", "reset": None}
        history.write(verb="update", manager=f"m{data.draw(st.integers(0, 20))}", **common)
    expect_same_as_go(go, history)


def test_items_that_pruning_left_without_a_key_keep_their_list(go: GoProgram) -> None:
    items: Object = {"type": "object", "properties": {"id": {"type": "string"}, "c": {"type": "string"}}}
    keyed: Object = {
        "type": "array",
        "items": items,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["id"],
    }
    inner: Object = {"type": "object", "properties": {"a": keyed, "b": {"type": "string"}}}
    atomic_items = keyed | {"items": items | {"x-kubernetes-map-type": "atomic"}}
    atomic = inner | {"properties": inner["properties"] | {"a": atomic_items}}
    history = History([whole(inner), whole(atomic)])
    head = {"apiVersion": "hortus.io/v1", "kind": "Gizmo", "metadata": {"name": "x"}}
    common = {"apiVersion": "hortus.io/v1", "force": True, "subresource": "", "reset": None}
    history.write(
        verb="update", manager="ada", schema=1, object=head | {"spec": {"a": [{"id": "x", "c": "y"}]}}, **common
    )
    history.write(verb="apply", manager="bert", schema=1, object=head | {"spec": {"b": "z"}}, **common)
    history.write(verb="apply", manager="bert", schema=0, object=head | {"spec": {}}, **common)
    expect_same_as_go(go, history)
    assert history.live is not None and history.live["spec"] == {"a": [{"id": "x", "c": "y"}]}


WRONG = (5, 0.5, 12345678.9, True, False, 'a"b', ["x", None, False, {"k": 1.5}], {"k": [None, "y", True]}, [], {})
"""Values of every form, none of which fits all fields."""


def test_values_of_the_wrong_form_are_refused_in_the_words_of_go(go: GoProgram) -> None:
    keyed = {"type": "object", "properties": {"id": {"type": "string"}, "port": {"type": "integer"}}}
    keys = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["id", "port"]}
    fields: Object = {
        "text": {"type": "string"},
        "number": {"type": "integer"},
        "flag": {"type": "boolean"},
        "map": {"type": "object", "additionalProperties": {"type": "string"}},
        "list": {"type": "array", "items": {"type": "string"}},
        "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
        "keyed": {"type": "array", "items": keyed, **keys},
        "whole": {"type": "object", "properties": {"x": {"type": "string"}}, "x-kubernetes-map-type": "atomic"},
        "either": {"x-kubernetes-int-or-string": True},
    }
    schema = whole({"type": "object", "properties": fields})
    items = ({"id": "a"}, {"port": 1}, {"id": "a", "port": 1}, {"id": 2, "port": False}, {"id": None, "port": 0.5})
    histories = [(name, value) for name in fields for value in WRONG]
    histories += [("keyed", [{}]), ("keyed", [{"x": 1}]), ("set", ["a", "a"]), ("set", [{}]), ("set", [[]])]
    histories += [("keyed", [first, second]) for first in items for second in items]
    for name, value in histories:
        history = History([schema])
        obj = {"apiVersion": "hortus.io/v1", "kind": "Gizmo", "metadata": {"name": "x", "namespace": "y"}}
        history.write(
            verb="apply",
            manager="ada",
            apiVersion="hortus.io/v1",
            object=obj | {"spec": {name: value}},
            schema=0,
            force=False,
            subresource="",
            reset=None,
        )
        expect_same_as_go(go, history)


LAST = "kubectl.kubernetes.io/last-applied-configuration"


@pytest.mark.parametrize("notes", [None, {}, {"a": "<b>&"}, {LAST: "mine"}, {LAST: "mine", "a": "b"}])
@pytest.mark.parametrize("force", [False, True])
def test_the_annotation_of_client_side_apply_is_taken_over_and_kept_as_in_go(
    go: GoProgram, notes: Object | None, force: bool
) -> None:
    history = History([None])
    head: Object = {"apiVersion": "hortus.io/v1", "kind": "Gizmo"}
    common = {"apiVersion": "hortus.io/v1", "schema": 0, "subresource": "", "reset": None}
    before = head | {"metadata": {"name": "x"}, "spec": {"a": 1, "b": 2}}
    first = head | {"metadata": {"name": "x", "annotations": {LAST: readable(before) + "\n"}}, "spec": before["spec"]}
    history.write(verb="update", manager="kubectl-client-side-apply", object=first, force=False, **common)
    history.write(verb="apply", manager="ada", object=before | {"spec": {"b": 2}}, force=False, **common)
    metadata = {"name": "x"} if notes is None else {"name": "x", "annotations": notes}
    for spec in ({"a": 3}, {"a": 3, "b": 3}):
        history.write(
            verb="apply", manager="kubectl", object=head | {"metadata": metadata, "spec": spec}, force=force, **common
        )
    expect_same_as_go(go, history)
