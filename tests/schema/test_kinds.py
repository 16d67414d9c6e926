"""Claims about kinds declared as structs, and the CRDs made from them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from msgspec import Meta

from hortus.schema import (
    AGE,
    Atomic,
    Column,
    Default,
    EmbeddedResource,
    Extra,
    Fields,
    Format,
    Kind,
    KindError,
    ListMap,
    ListSet,
    Nullable,
    PreserveUnknown,
    Scale,
    Structural,
    ValidationRule,
    Values,
    crd,
    decode,
    encode,
    kind,
    schema,
)


class Bed(Fields, frozen=True):
    """A bed of a garden."""

    name: str
    width_cm: Annotated[int, Meta(ge=10, lt=500)] = 120
    """Width.

    Between the planks."""


class GardenSpec(Fields, frozen=True):
    """The wanted state."""

    __rules__ = (ValidationRule("self.soil != 'clay' || self.beds.size() == 1", message="clay takes one bed"),)

    beds: Annotated[tuple[Bed, ...], ListMap("name"), Meta(min_length=1)]
    """The beds,
    from south to north."""
    soil: Literal["clay", "sand"] = "sand"
    tags: Annotated[tuple[str, ...], ListSet()] = ()
    labels: dict[str, str] = {}
    limit: int | str | None = None
    free: Annotated[dict[str, Any], PreserveUnknown()] = {}
    template: Annotated[dict[str, Any], EmbeddedResource()] = {}
    season: Annotated[str, Values("spring", "autumn")] = ""
    until: Annotated[str, Format("date-time")] | None = None
    note: Annotated[str, Nullable(), ValidationRule("self != 'x'")] | None = None
    fence: Annotated[dict[str, str], Atomic(), Default({})] = {}
    ratio: float = msgspec.field(default=0.5, name="mixRatio")


@kind(
    group="example.org",
    version="v1",
    short_names=("gdn",),
    categories=("all",),
    columns=(Column("Soil", ".spec.soil", priority=1), AGE),
    status=True,
    scale=Scale(".spec.size", ".status.size"),
    selectable=(".spec.soil",),
)
class Garden(Kind, frozen=True):
    """A garden."""

    spec: GardenSpec


@kind(group="example.org", version="v1alpha1", deprecation="use v1", served=False)
class OldGarden(Kind, frozen=True):
    """A garden, as it was."""


def test_each_marker_adds_its_keywords_to_the_schema() -> None:
    spec = schema(Garden)["properties"]["spec"]
    assert spec == {
        "type": "object",
        "description": "The wanted state.",
        "required": ["beds"],
        "x-kubernetes-validations": [
            {"rule": "self.soil != 'clay' || self.beds.size() == 1", "message": "clay takes one bed"}
        ],
        "properties": {
            "beds": {
                "type": "array",
                "description": "The beds, from south to north.",
                "minItems": 1,
                "x-kubernetes-list-type": "map",
                "x-kubernetes-list-map-keys": ["name"],
                "items": {
                    "type": "object",
                    "description": "A bed of a garden.",
                    "required": ["name"],
                    "properties": {
                        "name": {"type": "string"},
                        "widthCm": {
                            "type": "integer",
                            "description": "Width.\n\nBetween the planks.",
                            "minimum": 10,
                            "maximum": 500,
                            "exclusiveMaximum": True,
                            "default": 120,
                        },
                    },
                },
            },
            "soil": {"type": "string", "enum": ["clay", "sand"], "default": "sand"},
            "tags": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            "labels": {"type": "object", "additionalProperties": {"type": "string"}},
            "limit": {"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
            "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
            "template": {
                "type": "object",
                "x-kubernetes-preserve-unknown-fields": True,
                "x-kubernetes-embedded-resource": True,
            },
            "season": {"type": "string", "enum": ["spring", "autumn"]},
            "until": {"type": "string", "format": "date-time"},
            "note": {"type": "string", "nullable": True, "x-kubernetes-validations": [{"rule": "self != 'x'"}]},
            "fence": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "x-kubernetes-map-type": "atomic",
                "default": {},
            },
            "mixRatio": {"type": "number", "default": 0.5},
        },
    }


def test_a_crd_carries_names_columns_subresources_and_versions() -> None:
    definition = crd(Garden, OldGarden)
    assert definition["metadata"] == {"name": "gardens.example.org"}
    assert definition["spec"]["names"] == {
        "kind": "Garden",
        "listKind": "GardenList",
        "plural": "gardens",
        "singular": "garden",
        "shortNames": ["gdn"],
        "categories": ["all"],
    }
    new, old = ({k: v for k, v in version.items() if k != "schema"} for version in definition["spec"]["versions"])
    assert new == {
        "name": "v1",
        "served": True,
        "storage": True,
        "additionalPrinterColumns": [
            {"name": "Soil", "type": "string", "jsonPath": ".spec.soil", "priority": 1},
            {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        ],
        "selectableFields": [{"jsonPath": ".spec.soil"}],
        "subresources": {
            "status": {},
            "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"},
        },
    }
    assert old == {
        "name": "v1alpha1",
        "served": False,
        "storage": False,
        "deprecated": True,
        "deprecationWarning": "use v1",
    }


def test_an_object_survives_the_way_through_its_struct() -> None:
    obj = {
        "apiVersion": "example.org/v1",
        "kind": "Garden",
        "metadata": {"name": "g"},
        "spec": {"beds": [{"name": "a", "widthCm": 20}], "limit": "50%", "note": "y"},
    }
    assert encode(decode(Garden, obj | {"unknown": 1})) == obj


def test_defaults_of_the_structs_are_defaults_of_the_server() -> None:
    obj: dict[str, Any] = {"metadata": {}, "spec": {"beds": [{"name": "a"}]}}
    filled = msgspec.json.decode(msgspec.json.encode(obj))
    Structural.compile(schema(Garden)).default(filled)
    assert filled["spec"] == {"beds": [{"name": "a", "widthCm": 120}], "soil": "sand", "fence": {}, "mixRatio": 0.5}
    assert decode(Garden, filled) == decode(Garden, obj)


class Torn(Fields, frozen=True):
    value: int | bool = 0


@kind(group="example.org", version="v1")
class Broken(Kind, frozen=True):
    """A kind that no schema can say."""

    spec: Torn


def test_a_type_without_a_schema_is_refused_by_name_with_the_fix() -> None:
    with pytest.raises(KindError, match=r"Broken\.spec\.value: a field has one type"):
        schema(Broken)


class Either(Fields, frozen=True):
    __schema__: ClassVar[dict[str, Any]] = {"oneOf": [{"required": ["a"]}]}
    a: Annotated[str, Extra({"example": "x"})] = ""


@kind(group="example.org", version="v1")
class Choice(Kind, frozen=True):
    """A kind with keywords of its own."""

    spec: Either


def test_raw_keywords_reach_the_schema() -> None:
    spec = schema(Choice)["properties"]["spec"]
    assert spec["oneOf"] == [{"required": ["a"]}]
    assert spec["properties"]["a"]["example"] == "x"


class Planted(Fields, frozen=True):
    crops: tuple[str, ...] = ("*",)
    """Crops, or any."""


@kind(group="example.org", version="v1")
class Field(Kind, frozen=True):
    """A kind with a list as default."""

    spec: Planted


def test_a_default_is_as_json_has_it() -> None:
    found = schema(Field)["properties"]["spec"]["properties"]["crops"]["default"]
    assert found == ["*"]
    Structural.compile(schema(Field))
