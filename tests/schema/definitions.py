"""CustomResourceDefinitions with one thing wrong each, and what kube-apiserver says about it.

The sentences are checked against kube-apiserver's own library by tests/oracles.
"""

from __future__ import annotations

import copy
from typing import Any, NamedTuple

BASE: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "foos.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"plural": "foos", "kind": "Foo"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object"}}}},
            }
        ],
    },
}
V1 = ("spec", "versions", 0)
SCHEMA = "spec.validation.openAPIV3Schema"
SPEC = f"{SCHEMA}.properties[spec]"
STRING, INTEGER, OBJECT = {"type": "string"}, {"type": "integer"}, {"type": "object"}


class Case(NamedTuple):
    name: str
    crd: dict[str, Any]
    reported: tuple[str, ...]


def at(*path: str | int, value: Any) -> dict[str, Any]:
    """The definition with one place changed."""
    crd = copy.deepcopy(BASE)
    place: Any = crd
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return crd


def root(**schema: Any) -> dict[str, Any]:
    return at(*V1, "schema", value={"openAPIV3Schema": schema})


def spec(schema: dict[str, Any]) -> dict[str, Any]:
    return root(type="object", properties={"spec": schema})


def ruled(schema: dict[str, Any], rule: str, **more: Any) -> dict[str, Any]:
    return spec(schema | {"x-kubernetes-validations": [{"rule": rule, **more}]})


def listed(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


def mapped(items: dict[str, Any], *keys: str) -> dict[str, Any]:
    return spec(listed(items) | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)})


def objects(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def with_status(crd: dict[str, Any]) -> dict[str, Any]:
    crd["spec"]["versions"][0]["subresources"] = {"status": {}}
    return crd


LABEL = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character,"
    " and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is"
    " '[a-z]([-a-z0-9]*[a-z0-9])?')"
)
RULE = f"{SPEC}.x-kubernetes-validations[0]"
ADVICE = (
    "(try simplifying the rule, or adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are"
    " declared)"
)
KEYED = "this property is in x-kubernetes-list-map-keys, so it"


MISSPELT = "self.b \\u003e 1"


def internal(rule: str) -> str:
    members = '"Message":"","MessageExpression":"","Reason":null,"FieldPath":"","OptionalOldSelf":null'
    return f'Invalid value: {{"Rule":"{rule}",{members}}}'


CASES = (
    Case("sound", BASE, ()),
    Case(
        "a name that is not the plural and the group",
        at("metadata", "name", value="x"),
        ('metadata.name: Invalid value: "x": must be spec.names.plural+"."+spec.group',),
    ),
    Case(
        "a group without a dot",
        at("spec", "group", value="example"),
        (
            'metadata.name: Invalid value: "foos.example.org": must be spec.names.plural+"."+spec.group',
            'spec.group: Invalid value: "example": should be a domain with at least one dot',
        ),
    ),
    Case(
        "an unknown scope",
        at("spec", "scope", value="X"),
        ('spec.scope: Unsupported value: "X": supported values: "Cluster", "Namespaced"',),
    ),
    Case(
        "a list kind that is the kind",
        at("spec", "names", "listKind", value="Foo"),
        ('spec.names.listKind: Invalid value: "Foo": kind and listKind may not be the same',),
    ),
    Case(
        "a short name in capitals",
        at("spec", "names", "shortNames", value=["A"]),
        (f'spec.names.shortNames[0]: Invalid value: "A": {LABEL}',),
    ),
    Case(
        "a version name in capitals",
        at(*V1, "name", value="V1"),
        (
            f'spec.version: Invalid value: "V1": {LABEL}',
            f'spec.versions[0].name: Invalid value: "V1": {LABEL}',
        ),
    ),
    Case(
        "a warning of a version that is not deprecated",
        at(*V1, "deprecationWarning", value="x"),
        ('spec.versions[0].deprecationWarning: Invalid value: "x": can only be set for deprecated versions',),
    ),
    Case("no schema", at(*V1, "schema", value={}), ("spec.versions[0].schema.openAPIV3Schema: Required value",)),
    Case(
        "a poor column",
        at(*V1, "additionalPrinterColumns", value=[{"name": "", "type": "x", "jsonPath": "a", "format": "q"}]),
        (
            'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "a": must be a simple json path starting with .',
            'spec.additionalPrinterColumns[0].format: Invalid value: "q": must be one of'
            " byte,date,date-time,double,float,int32,int64,password",
            "spec.additionalPrinterColumns[0].name: Required value",
            'spec.additionalPrinterColumns[0].type: Invalid value: "x": must be one of'
            " boolean,date,integer,number,string",
        ),
    ),
    Case(
        "a scale that looks elsewhere",
        at(*V1, "subresources", value={"scale": {"specReplicasPath": "spec.a", "statusReplicasPath": ".spec.a"}}),
        (
            'spec.subresources.scale.specReplicasPath: Invalid value: "spec.a": must be a simple json path starting'
            " with .",
            'spec.subresources.scale.statusReplicasPath: Invalid value: ".spec.a": should be a json path under .status',
        ),
    ),
    Case(
        "fields that cannot be selected",
        at(*V1, "selectableFields", value=[{"jsonPath": ".spec.x"}, {"jsonPath": ".spec"}, {"jsonPath": ""}]),
        (
            'spec.selectableFields[0].jsonPath: Invalid value: ".spec.x": is an invalid path: does not refer to a valid'
            " field",
            'spec.selectableFields[1].jsonPath: Invalid value: ".spec": must point to a field of type string, boolean'
            " or integer. Enum string fields and strings with formats are allowed.",
            "spec.selectableFields[2].jsonPath: Required value",
        ),
    ),
    Case(
        "a webhook conversion without a webhook",
        at("spec", "conversion", value={"strategy": "Webhook"}),
        (
            "spec.conversion.conversionReviewVersions: Required value",
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to Webhook",
        ),
    ),
    Case(
        "review versions without a webhook conversion",
        at("spec", "conversion", value={"strategy": "None", "webhook": {"conversionReviewVersions": ["v1"]}}),
        ("spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy is not set to Webhook",),
    ),
    Case(
        "unknown fields preserved as a whole",
        at("spec", "preserveUnknownFields", value=True),
        (
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set"
            " x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        ),
    ),
    Case(
        "a root that is a string",
        root(type="string"),
        (f'{SCHEMA}.type: Invalid value: "string": must be object at the root',),
    ),
    Case("a root of no type", root(), (f"{SCHEMA}.type: Required value: must not be empty at the root",)),
    Case(
        "a root that is a map",
        root(type="object", additionalProperties=STRING),
        (f"{SCHEMA}.additionalProperties: Forbidden: must not be used at the root",),
    ),
    Case(
        "metadata that says too much",
        root(**objects(metadata=objects(labels=OBJECT), kind=INTEGER)),
        (
            f'{SCHEMA}.properties[kind].type: Invalid value: "integer": must be string',
            f"{SCHEMA}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but"
            " metadata is implicitly specified",
        ),
    ),
    Case(
        "a nullable root",
        root(type="object", nullable=True),
        (f"{SCHEMA}.nullable: Forbidden: nullable cannot be true at the root",),
    ),
    Case(
        "a field of no type",
        spec({}),
        (f"{SPEC}.type: Required value: must not be empty for specified object fields",),
    ),
    Case(
        "items of no type",
        spec(listed({})),
        (f"{SPEC}.items.type: Required value: must not be empty for specified array items",),
    ),
    Case("a list of no items", spec({"type": "array"}), (f"{SPEC}.items: Required value: must be specified",)),
    Case(
        "a type that is none",
        spec({"type": "foo"}),
        (
            f'{SPEC}.type: Unsupported value: "foo": supported values: "array", "boolean", "integer", "number",'
            ' "object", "string"',
        ),
    ),
    Case(
        "a pattern that is none",
        spec(STRING | {"pattern": "["}),
        (
            f'{SPEC}.pattern: Invalid value: "[": must be a valid regular expression, but isn\'t: error parsing regexp:'
            " missing closing ]: `[`",
        ),
    ),
    Case(
        "unique items",
        spec(STRING | {"uniqueItems": True}),
        (
            f"{SPEC}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes"
            " quadratic",
        ),
    ),
    Case(
        "an object that is a map too",
        spec(objects(a=STRING) | {"additionalProperties": STRING}),
        (f"{SPEC}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive",),
    ),
    Case(
        "an alternative with types and fields of its own",
        spec(OBJECT | {"anyOf": [objects(a=STRING)]}),
        (
            f"{SPEC}.anyOf[0].properties[a].type: Forbidden: must be empty to be structural",
            f"{SPEC}.anyOf[0].type: Forbidden: must be empty to be structural",
        ),
    ),
    Case(
        "an alternative that says what restrictions may not",
        spec(OBJECT | {"allOf": [{"description": "x", "title": "t", "default": {}, "nullable": True}]}),
        (
            f"{SPEC}.allOf[0].default: Forbidden: must be undefined to be structural",
            f"{SPEC}.allOf[0].description: Forbidden: must be empty to be structural",
            f"{SPEC}.allOf[0].nullable: Forbidden: must be false to be structural",
            f"{SPEC}.allOf[0].title: Forbidden: must be empty to be structural",
        ),
    ),
    Case(
        "an integer or string, in the usual form",
        spec({"x-kubernetes-int-or-string": True, "anyOf": [INTEGER, STRING]}),
        (),
    ),
    Case(
        "an integer or string with further demands",
        spec({"x-kubernetes-int-or-string": True, "allOf": [{"anyOf": [INTEGER, STRING]}, {"minimum": 1}]}),
        (),
    ),
    Case(
        "an integer or string that keeps unknown fields",
        spec({"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True}),
        (
            f"{SPEC}.x-kubernetes-preserve-unknown-fields: Invalid value: true: must be false if"
            " x-kubernetes-int-or-string is true",
        ),
    ),
    Case(
        "an embedded resource that is a string",
        spec(STRING | {"x-kubernetes-embedded-resource": True}),
        (
            f"{SPEC}.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without"
            " x-kubernetes-preserve-unknown-fields",
            f'{SPEC}.type: Invalid value: "string": must be object if x-kubernetes-embedded-resource is true',
        ),
    ),
    Case(
        "an unknown list type",
        spec(listed(STRING) | {"x-kubernetes-list-type": "foo"}),
        (f'{SPEC}.x-kubernetes-list-type: Unsupported value: "foo": supported values: "atomic", "set", "map"',),
    ),
    Case(
        "a keyed list of strings",
        spec(listed(STRING) | {"x-kubernetes-list-type": "map"}),
        (
            f'{SPEC}.items.type: Invalid value: "string": must be object if parent array\'s x-kubernetes-list-type is'
            " map",
            f"{SPEC}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map",
        ),
    ),
    Case(
        "keys that repeat, are unknown or may be missing",
        mapped(objects(a=STRING), "a", "a", "b"),
        (
            f"{SPEC}.items.properties[a].default: Required value: {KEYED} must have a default or be a required"
            " property",
            f"{SPEC}.items.properties[a].default: Required value: {KEYED} must have a default or be a required"
            " property",
            f'{SPEC}.x-kubernetes-list-map-keys: Invalid value: ["a","a","b"]: entries must all be names of item'
            " properties",
            f'{SPEC}.x-kubernetes-list-map-keys: Invalid value: ["a","a","b"]: must not contain duplicate entries',
        ),
    ),
    Case(
        "a set with members that may be null",
        spec(listed(STRING | {"nullable": True}) | {"x-kubernetes-list-type": "set"}),
        (f"{SPEC}.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set",),
    ),
    Case(
        "a default of the wrong type",
        spec(STRING | {"default": 1}),
        (f'{SPEC}.default: Invalid value: "integer":  in body must be of type string: "integer"',),
    ),
    Case(
        "a default with unknown fields",
        spec(OBJECT | {"default": {"a": 1}}),
        (f'{SPEC}.default: Invalid value: {{"a":1}}: must not have unknown fields',),
    ),
    Case(
        "a default of the kind",
        root(**objects(kind=STRING | {"default": "x"}, spec=OBJECT)),
        (f"{SCHEMA}.properties[kind].default: Forbidden: must not be set in top-level kind",),
    ),
    Case("a sound rule", ruled(objects(a=INTEGER), "self.a > 1"), ()),
    Case(
        "a rule with a misspelt field",
        ruled(objects(a=INTEGER), "self.b > 1"),
        (
            f"{RULE}.rule: {internal(MISSPELT)}: compilation failed: ERROR: <input>:1:5: undefined field 'b'"
            "\n | self.b > 1\n | ....^",
        ),
    ),
    Case(
        "a rule that is no question",
        ruled(objects(a=INTEGER), "self.a"),
        (f"{RULE}.rule: {internal('self.a')}: cel expression must evaluate to a bool",),
    ),
    Case("an empty rule", ruled(OBJECT, ""), (f"{RULE}.rule: Required value: rule is not specified",)),
    Case(
        "a rule of two lines without a message",
        ruled(objects(a=INTEGER), "self.a\n > 1"),
        (f"{RULE}.message: Required value: message must be specified if rule contains line breaks",),
    ),
    Case(
        "a rule with bad particulars",
        ruled(objects(a=INTEGER), "self.a > 1", message=" ", reason="x", fieldPath=".b"),
        (
            f'{RULE}.fieldPath: Invalid value: ".b": must be a valid path',
            f'{RULE}.message: Invalid value: " ": must be non-empty if specified',
            f'{RULE}.reason: Unsupported value: "x": supported values: "FieldValueDuplicate", "FieldValueForbidden",'
            ' "FieldValueInvalid", "FieldValueRequired"',
        ),
    ),
    Case(
        "an optional old self that is not used",
        ruled(objects(a=INTEGER), "self.a > 1", optionalOldSelf=True),
        (f"{RULE}.optionalOldSelf: Invalid value: true: may not be set if oldSelf is not used in rule",),
    ),
    Case(
        "old selves of members that have none",
        spec(listed(INTEGER | {"x-kubernetes-validations": [{"rule": "self > oldSelf"}]})),
        (
            f'{SPEC}.items.x-kubernetes-validations[0].rule: Invalid value: "self > oldSelf": oldSelf cannot be used on'
            f" the uncorrelatable portion of the schema within {SPEC}",
        ),
    ),
    Case(
        "a rule that visits everything twice",
        ruled(listed(STRING), "self.all(x, self.all(y, x == y))"),
        (
            f"{SCHEMA}: Forbidden: x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema"
            f" exceeds budget by factor of more than 100x {ADVICE}",
            f"{RULE}.rule: Forbidden: contributed to estimated rule cost total exceeding cost limit for entire"
            " OpenAPIv3 schema",
            f"{RULE}.rule: Forbidden: estimated rule cost exceeds budget by factor of more than 100x {ADVICE}",
        ),
    ),
    Case(
        "a rule that visits a few things twice",
        ruled(listed(STRING | {"maxLength": 10}, maxItems=10), "self.all(x, self.all(y, x == y))"),
        (),
    ),
    Case(
        "a root that ties the status to the rest",
        with_status(root(**objects(spec=OBJECT))),
        (),
    ),
)
