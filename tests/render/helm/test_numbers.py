"""Claims about numbers on their way from values through templates and YAML into objects."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.render.gotemplate.test_yaml import types
from tests.render.oracles import GoTemplates

from hortus.kube.numbers import stored
from hortus.render.helm import ChartSource, HelmBinaryRenderer, RenderRequest, load_files, render_chart
from hortus.render.helm.manifests import split_documents

TEMPLATE = """
{{- if .Values.enabled }}
kind: A
plain: {{ .Values.number }}
quoted: {{ .Values.number | quote }}
default: {{ .Values.number | default 1000650000 }}
list: [{{ toJson .Values.number }}, {{ toJson .Values.default }}]
yaml: {{- toYaml .Values | nindent 2 }}
json: {{ toJson .Values }}
float: {{ float64 .Values.default }}
whole: {{ int64 .Values.default }}
sum: {{ add 1 .Values.default }}
product: {{ mulf 1.5 .Values.default }}
text: {{ .Values.default | toString }}
{{- with .Values.filled }}
filled: {{ . | quote }}
{{- end }}
{{- end }}
"""
FILES = {
    "Chart.yaml": b"apiVersion: v2\nname: c\nversion: 1.0.0\n",
    "values.yaml": b"enabled: true\nnumber: 2.0\ndefault: 1000650000\nfilled:\nflipped: false\n",
    "templates/a.yaml": TEMPLATE.encode(),
}
NUMBERS = st.one_of(
    st.none(),
    st.integers(-(1 << 63), 1 << 63).map(float),
    st.integers(-10, 10_000_000),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.sampled_from([1.00065e9, 1e6, 1e20, 1e21, 1e22, 0.1, 1e-7, -0.0, 2.0, 123456789012345680.0]),
)
VALUES = st.fixed_dictionaries(
    {},
    optional={
        "enabled": st.sampled_from([True, True, False, None, 1, "yes"]),
        "number": NUMBERS,
        "default": NUMBERS,
        "filled": st.one_of(NUMBERS, st.lists(NUMBERS, max_size=3), st.dictionaries(st.sampled_from("abc"), NUMBERS)),
        "flipped": st.booleans(),
    },
)


def _number(text: str) -> int | float:
    return float(text) if any(char in text for char in ".eE") else stored(int(text))


def read_by_go(text: str, go_templates: GoTemplates) -> Any:
    output, error = go_templates.ask(kind="yaml", text=base64.b64encode(text.encode()).decode())
    assert not error
    return json.loads(output, parse_int=_number, parse_float=_number)


@pytest.mark.oracle
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@example(values={"number": 1000650000, "filled": {"a": 1e9}})
@given(values=VALUES)
async def test_objects_hold_the_numbers_that_helm_gives_the_cluster(
    values: dict[str, Any], helm: str, go_templates: GoTemplates
) -> None:
    chart = ChartSource.from_files(FILES)
    async with HelmBinaryRenderer(helm) as binary:
        text = (await binary.render(RenderRequest(chart, values))).text
    found = render_chart(load_files(chart.files), values)
    assert found.text == text
    expected = [read_by_go(part, go_templates) for part in split_documents(text)]
    expected = [part for part in expected if part]
    assert found.objects == expected
    assert types(found.objects) == types(expected)


def test_a_whole_number_of_values_is_a_whole_number_of_the_object() -> None:
    found = render_chart(load_files(ChartSource.from_files(FILES).files), {"number": 1000650000}).objects[0]
    names = ("plain", "quoted", "default", "list", "json", "yaml")
    assert [found[name] for name in names] == [
        1000650000,
        "1.00065e+09",
        1000650000,
        [1000650000, 1000650000],
        {"default": 1000650000, "filled": None, "flipped": False, "number": 1000650000, "enabled": True},
        {"default": 1000650000, "filled": None, "flipped": False, "number": 1000650000, "enabled": True},
    ]
    assert [type(found[name]) for name in names[:1]] + [type(part) for part in found["list"][:2]] == [int, int, int]
    assert type(found["json"]["default"]) is type(found["yaml"]["default"]) is int
