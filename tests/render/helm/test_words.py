"""Claims about what is refused: the same charts as by the real helm, in the same words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from hortus.render.helm import (
    ChartError,
    ChartOptions,
    ChartSource,
    HelmBinaryRenderer,
    RenderRequest,
    load_files,
    render_chart,
)

_CHART = "apiVersion: v2\nname: c\nversion: 1.0.0\n"
_TEMPLATE = "kind: A\n"
_HINT = "\n\nUse --debug flag to render out invalid YAML"
MANIFESTS = r"""
kind: A\nmetadata: {name: [a]}
kind: A\nmetadata: {name: {a: b}}
kind: A\nmetadata: {name: 1}
kind: A\nmetadata: {name: true}
kind: A\nMetadata: {Name: [a]}
apiVersion: [a]\nkind: A
apiVersion: {a: 1}\nkind: A
apiVersion: 1\nkind: A
Kind: [a]\nAPIVERSION: [b]
Kind: Namespace\n---\nkind: Deployment\n---\nKIND: Secret\nkind: ConfigMap
kind: [a]
kind: {a: 1}
kind: 1
kind: true
kind: null
kind: A\nmetadata: [a]
kind: A\nmetadata: a
kind: A\nmetadata: 1
kind: A\nmetadata: true
kind: A\nmetadata: {annotations: [a]}
kind: A\nmetadata: {annotations: a}
kind: A\nmetadata: {annotations: {a: [b]}}
kind: A\nmetadata: {annotations: {a: {b: c}}}
kind: A\nmetadata: {annotations: {a: 1}}
kind: A\nmetadata: {annotations: {helm.sh/hook: }}
kind: A\nmetadata: {Annotations: {helm.sh/hook: test}}
- a\n- b
just text
5
5.5
true
'x'
null
[]
{}
kind: A\n---\n- a
{a: b?c}
kind: A\nv: {{ .Capabilities.HelmVersion.Version }}
"""
CHART_FIELDS = r"""
name: 1
name: [a]
name:
name: {a: 1}
name: c\nhome: [a]
name: c\ndescription: {a: 1}
name: c\nicon: 5
name: c\nkeywords: a
name: c\nkeywords: [1, true]
name: c\nkeywords: [{a: 1}]
name: c\nsources: a
name: c\nmaintainers: [a]
name: c\nmaintainers: {a: 1}
name: c\nmaintainers: [{name: [a]}]
name: c\nmaintainers: [null]
name: c\ndeprecated: 'true'
name: c\ndeprecated: 1
name: c\ndeprecated: yes
name: c\ndependencies: {a: 1}
name: c\ndependencies: [a]
name: c\ndependencies: [null]
name: c\ndependencies: [{name: a, version: 1, tags: a}]
name: c\ndependencies: [{name: a, version: 1, tags: [{a: 1}]}]
name: c\ndependencies: [{name: a, version: 1, enabled: a}]
name: c\ndependencies: [{name: a, version: 1, import-values: a}]
name: c\ndependencies: [{name: a, version: 1}, {name: b, version: 1, alias: d}]
name: c\nannotations: [a]
name: c\nannotations: {a: 1}
name: c\nannotations: {a: {b: 1}}
name: c\ntype: foo
name: c\ntype: 1
name: c\ntype: [a]
name: c\ntype: library
name: c\ntype: Library
name: c\nappVersion: 1.10
name: c\nappVersion: [1]
name: c\nkubeVersion: [1]
name: c\ncondition: [a]
name: [a]\nappVersion: [1]
NAME: c
"""
CHART_FILES = r"""
- a
abc
5

a: [
apiVersion: v2\nname: c\nversion: 1
apiVersion: v2\nname: c\nversion: abc
apiVersion: v2\nname: c\nversion: [1]
apiVersion: v2\nname: c
apiVersion: v2\nversion: 1.0.0
name: c\nversion: 1.0.0
apiVersion: 2\nname: c\nversion: 1.0.0
apiVersion: [v2]\nname: c\nversion: 1.0.0
"""
VALUES_FILES = r"""
- a
abc
5
a: [
null
a: 1\na: 2
"""


def _cases(text: str) -> list[str]:
    return [line.replace("\\n", "\n") + "\n" for line in text[1:-1].split("\n")]


CHARTS = [
    *({"templates/a.yaml": text} for text in _cases(MANIFESTS)),
    *({"Chart.yaml": f"apiVersion: v2\nversion: 1.0.0\n{text}"} for text in _cases(CHART_FIELDS)),
    *({"Chart.yaml": text} for text in _cases(CHART_FILES)),
    *({"values.yaml": text, "templates/a.yaml": "kind: A\nv: {{ toJson .Values }}\n"} for text in _cases(VALUES_FILES)),
]


def _files(chart: dict[str, str]) -> dict[str, bytes]:
    files = {"Chart.yaml": _CHART, "templates/a.yaml": _TEMPLATE, **chart}
    return {name: text.encode() for name, text in files.items()}


def here(request: RenderRequest) -> str:
    try:
        chart = load_files(request.chart.files)
        return render_chart(chart, request.values, options=request.options).text
    except ChartError as error:
        return f"refused: {error}"


async def there(request: RenderRequest, helm: str) -> str:
    async with HelmBinaryRenderer(helm) as binary:
        try:
            return (await binary.render(request)).text
        except ChartError as error:
            return f"refused: {error}".removesuffix(_HINT)


@pytest.mark.oracle
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: " ".join(chart.values())[:60])
async def test_a_chart_is_taken_or_refused_in_helms_words(chart: dict[str, str], helm: str) -> None:
    request = RenderRequest(ChartSource.from_files(_files(chart)))
    assert here(request) == await there(request, helm)


@pytest.mark.parametrize(
    ("chart", "words"),
    [
        (
            {"templates/a.yaml": "kind: A\nmetadata: {name: [a]}"},
            "YAML parse error on c/templates/a.yaml: error unmarshaling JSON: while decoding JSON: json: cannot"
            " unmarshal array into Go struct field .metadata.name of type string",
        ),
        (
            {"templates/a.yaml": "- a"},
            "YAML parse error on c/templates/a.yaml: error unmarshaling JSON: while decoding JSON: json: cannot"
            " unmarshal array into Go value of type releaseutil.SimpleHead",
        ),
        (
            {"Chart.yaml": _CHART + "maintainers: [{name: [a]}]"},
            "cannot load Chart.yaml: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal array into Go"
            " struct field Maintainer.maintainers.name of type string",
        ),
        ({"Chart.yaml": _CHART + "type: library"}, "library charts are not installable"),
        (
            {"Chart.yaml": _CHART + "dependencies: [{name: x, version: 1.0.0}]"},
            "An error occurred while checking for chart dependencies. You may need to run `helm dependency build` to"
            " fetch missing dependencies: found in Chart.yaml, but missing in charts/ directory: x",
        ),
    ],
)
def test_charts_are_refused_in_these_words(chart: dict[str, str], words: str) -> None:
    assert here(RenderRequest(ChartSource.from_files(_files(chart)))) == f"refused: {words}"


def test_a_chart_sees_the_go_version_of_its_helm() -> None:
    request = RenderRequest(ChartSource.from_files(_files({"templates/a.yaml": "v: {{ .Capabilities.HelmVersion }}"})))
    assert here(request).endswith("v: {v3.22   go1.26.8}\n")


_STRING, _INTEGER = {"type": "string"}, {"type": "integer"}
_OLD = {"$schema": "http://json-schema.org/draft-07/schema#"}
SCHEMAS: list[tuple[Any, Any]] = [
    ({"type": "string"}, 1),
    ({"type": ["string", "null", "array", "object", "boolean", "integer"]}, 1.5),
    ({"required": ["a", "it's"]}, {}),
    ({"required": ["a"]}, {}),
    ({"properties": {"a": {}}, "additionalProperties": False}, {"x'y": 1}),
    ({"patternProperties": {"^a": _STRING}}, {"ab": 1}),
    ({"enum": ["x", 'y"', "it's", "ü", 1, None, True]}, "z"),
    ({"enum": ["x"]}, "z"),
    ({"enum": [{"a": 1}, "x"]}, "z"),
    ({"enum": [f"v{number}" for number in range(40)]}, "z"),
    ({"const": None}, "z"),
    ({"const": {"b": 1}}, "z"),
    *(({"exclusiveMinimum": n}, n) for n in (5, 1234, 12345.5, 999999, 1000000, 123456789, 0.0001, 1.5e-7, -1234.5, 0)),
    ({"minimum": 5}, 1),
    ({"maximum": 1000000}, 100000000),
    ({"exclusiveMaximum": 5}, 5),
    ({"multipleOf": 0.1}, 0.25),
    ({"minLength": 1500}, "x" * 1200),
    ({"maxLength": 2, "pattern": "^[0-9]+$"}, "xxx"),
    ({"minItems": 2}, [1]),
    ({"maxItems": 1}, [1, 2]),
    ({"uniqueItems": True}, [1, 2, 1]),
    ({"minProperties": 3}, {"a": 1}),
    ({"maxProperties": 0}, {"a": 1}),
    ({"propertyNames": {"maxLength": 2, "pattern": "^x"}}, {"abc": 1}),
    ({"items": _STRING}, [1, "x", 2]),
    ({"prefixItems": [{}], "items": False}, [1, 2, 3]),
    ({"contains": _STRING}, [1, 2]),
    ({"contains": _STRING, "minContains": 2}, [1, "x"]),
    ({"contains": _STRING, "minContains": 2}, []),
    ({"contains": _STRING, "maxContains": 1}, ["x", "y"]),
    ({"not": {}}, "x"),
    ({"anyOf": [_STRING, {"required": ["x"], "properties": {"y": _STRING}}]}, {"y": 1}),
    ({"oneOf": [_STRING, _INTEGER]}, True),
    ({"oneOf": [_INTEGER, {"minimum": 1}, {}]}, 5),
    ({"oneOf": [{"oneOf": [_STRING]}]}, 1),
    ({"allOf": [_STRING, {"minLength": 3}, {"allOf": [{"enum": ["y"]}]}]}, "x"),
    ({"if": _STRING, "then": {"minLength": 5}, "else": _INTEGER}, "x"),
    ({"if": _STRING, "then": {"minLength": 5}, "else": _INTEGER}, 1.5),
    ({"dependentRequired": {"a": ["b", "c"]}}, {"a": 1}),
    ({"dependentSchemas": {"a": {"required": ["b"], "maxProperties": 0}}}, {"a": 1}),
    ({"properties": {"b": {"items": {"properties": {"c/d~e": _STRING}}}}}, {"b": [{"c/d~e": 1}]}),
    ({"properties": {"b": {"minProperties": 2, "required": ["c"]}}}, {"b": {}}),
    (False, 1),
    ({"$ref": "#/$defs/two"}, {"q": 1}),
    ({"$ref": "#/$defs/one"}, 1),
    ({"type": "string", "enum": ["x"], "minLength": 4}, 1),
    ({"enum": ["x"], "minLength": 4}, "abc"),
]


def _schema_request(schema: Any, value: Any, *, skip: bool = False, old: bool = False) -> RenderRequest:
    definitions = {"one": _STRING, "two": {"required": ["z"], "additionalProperties": False}}
    document = {**(_OLD if old else {}), "properties": {"a": schema}, "$defs": definitions}
    files = _files({"values.schema.json": json.dumps(document)})
    return RenderRequest(ChartSource.from_files(files), {"a": value}, options=ChartOptions(skip_schema=skip))


@pytest.mark.oracle
@pytest.mark.parametrize(("schema", "value"), SCHEMAS)
async def test_values_that_break_a_schema_are_refused_in_helms_words(schema: Any, value: Any, helm: str) -> None:
    request = _schema_request(schema, value)
    found = here(request)
    assert found.startswith("refused")
    assert found == await there(request, helm)


@pytest.mark.oracle
async def test_broken_dependencies_of_an_old_draft_are_refused_in_helms_words(helm: str) -> None:
    request = _schema_request({"dependencies": {"a": ["b"], "c": {"required": ["d"]}}}, {"a": 1}, old=True)
    assert here(request) == await there(request, helm)


def test_every_value_that_breaks_a_schema_is_reported() -> None:
    found = here(_schema_request({"items": _STRING}, list(range(300))))
    assert found.count("got number, want string") == 300


async def test_a_schema_that_refers_to_other_documents_can_be_passed_over() -> None:
    remote = {"$ref": "https://example.invalid/schema.json"}
    refused = here(_schema_request(remote, 1))
    assert "other documents are not fetched" in refused
    assert "passed over (skip_schema)" in refused
    assert here(_schema_request(remote, 1, skip=True)) == "---\n# Source: c/templates/a.yaml\nkind: A\n"


@pytest.mark.oracle
async def test_helm_passes_a_schema_over_too(helm: str) -> None:
    request = _schema_request({"$ref": "https://example.invalid/schema.json"}, 1, skip=True)
    assert await there(request, helm) == here(request)
