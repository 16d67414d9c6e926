"""Claims about JSONPath, in the dialect of kubectl."""

from __future__ import annotations

from typing import Any

import pytest

from hortus.schema.jsonpath import JsonPath, JsonPathError, JsonPathTemplate

NODE: dict[str, Any] = {
    "metadata": {"name": "n-1", "labels": {"kyma-project.io/shoot-name": "s-1"}},
    "spec": {"replicas": 2, "ratio": 1.0, "paused": False, "nothing": None},
    "status": {
        "conditions": [{"type": "Ready", "status": "True"}, {"type": "Fresh", "status": "False", "reason": "Old"}],
        "ports": [80, 443, 8080, 9090],
    },
}
OBJECTS = {"items": [NODE, {"metadata": {"name": "n-2"}, "status": {"conditions": []}}]}


@pytest.mark.parametrize(
    ("path", "found"),
    [
        (".metadata.name", ["n-1"]),
        ("metadata.name", []),
        ("{.metadata.name}", ["n-1"]),
        (r".metadata.labels.kyma-project\.io/shoot-name", ["s-1"]),
        (r".metadata.labels['kyma-project\.io/shoot-name']", ["s-1"]),
        ("['metadata.name']", ["n-1"]),
        (".metadata['name','labels']", ["n-1", {"kyma-project.io/shoot-name": "s-1"}]),
        ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
        (".status.conditions[?(@.type == 'Fresh')].reason", ["Old"]),
        (".status.conditions[?(@.reason)].type", ["Fresh"]),
        (".status.conditions[*].type", ["Ready", "Fresh"]),
        (".status.conditions.*.type", ["Ready", "Fresh"]),
        (".status.conditions[-1].type", ["Fresh"]),
        (".status.ports[1:3]", [443, 8080]),
        (".status.ports[::2]", [80, 8080]),
        (".status.ports[0,2]", [80, 8080]),
        (".status.ports[?(@>443)]", [8080, 9090]),
        ("..type", ["Ready", "Fresh"]),
        ("$.spec.replicas", [2]),
        (".spec.absent.deeper[0]", []),
        (".spec.nothing", [None]),
    ],
)
def test_a_path_finds_its_values(path: str, found: list[Any]) -> None:
    if path == "metadata.name":
        with pytest.raises(JsonPathError):
            JsonPath.parse(path)
    else:
        assert JsonPath.parse(path).find(NODE) == found


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{.metadata.name}", "n-1"),
        ("name={.metadata.name};", "name=n-1;"),
        ("{.spec.replicas} {.spec.ratio} {.spec.paused}", "2 1 false"),
        ("{.status.ports}", "[80,443,8080,9090]"),
        ("{.status.ports[0:2]}", "80 443"),
        ('{"{"}{ .metadata.name }{"}"}', "{n-1}"),
        ("{.metadata.labels}", '{"kyma-project.io/shoot-name":"s-1"}'),
        ('{range .status.conditions[*]}{.type}{"\\t"}{.status}{"\\n"}{end}', "Ready\tTrue\nFresh\tFalse\n"),
        ("{.spec.nothing}", "null"),
        ("[{.spec.absent}]", "[]"),
    ],
)
def test_a_template_prints_as_kubectl_does(template: str, text: str) -> None:
    assert JsonPathTemplate.parse(template).render(NODE) == text


def test_ranges_nest() -> None:
    template = JsonPathTemplate.parse(
        '{range .items[*]}{.metadata.name}:{range .status.conditions[*]}{.type},{end};{end}{"!"}'
    )
    assert template.render(OBJECTS) == "n-1:Ready,Fresh,;n-2:;!"


@pytest.mark.parametrize(
    "text",
    [
        "{.a",
        "{hello}",
        "{end}",
        "{.a[}",
        "{.a[x]}",
        '{.a[?(@.b=="c"]}',
        "{.a[?(@.b<>1)]}",
        "{....a}",
        "{.a[::0]}",
        "{'a}",
    ],
)
def test_malformed_paths_are_refused(text: str) -> None:
    with pytest.raises(JsonPathError):
        JsonPathTemplate.parse(text)


def test_a_path_that_does_not_fit_the_object_fails() -> None:
    with pytest.raises(JsonPathError, match="is not array"):
        JsonPath.parse(".metadata[0]").find(NODE)
    assert JsonPath.parse(".metadata[0]").first(NODE) is None
