"""Objects come out of a store as they went in, with the revision they were written at."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hortus.apiserver.store.encoding import encode

TEXT = st.text(max_size=5)
METADATA = st.dictionaries(st.sampled_from(["name", "namespace", "uid", "resourceVersion"]), TEXT)
OBJECTS = st.fixed_dictionaries(
    {"metadata": METADATA},
    optional={"apiVersion": TEXT, "kind": TEXT, "data": st.dictionaries(TEXT, TEXT, max_size=2), "z": st.none()},
)


@given(OBJECTS, st.integers(min_value=1, max_value=2**62))
def test_an_object_is_what_it_was_but_for_its_revision(obj: dict[str, Any], revision: int) -> None:
    found = msgspec.json.decode(encode(obj).at(revision))
    assert found == {**obj, "metadata": {**obj["metadata"], "resourceVersion": str(revision)}}


@pytest.mark.parametrize("metadata", [{}, {"name": "a"}, {"resourceVersion": "7", "name": "a"}])
def test_type_and_revision_come_first(metadata: dict[str, str]) -> None:
    """Watches and lists cut stored objects at these places without decoding them."""
    obj = {"data": {}, "metadata": metadata, "kind": "ConfigMap", "apiVersion": "v1"}
    stored = encode(obj).at(9)
    assert stored.startswith(b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"9"')
    assert stored.endswith(b',"data":{}}')
    bare = encode({"metadata": metadata}).at(9)
    assert bare.startswith(b'{"metadata":{"resourceVersion":"9"')
    assert bare.endswith(b'"}}')
