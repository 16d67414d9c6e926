"""Values templates: Go templates over the Cluster, without a way to the operator's process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hortus.domains.stacks.addons.values import ValuesError, templated_values

CLUSTER: dict[str, Any] = {
    "metadata": {"name": "shop"},
    "spec": {
        "controlPlaneEndpoint": {"host": "shop.example.org", "port": 6443},
        "clusterNetwork": {"pods": {"cidrBlocks": ["10.0.0.0/16"]}},
        "topology": {"variables": [{"name": "zone", "value": "a"}, {"name": "text", "value": "one\ntwo"}]},
    },
}
DATA = {"Cluster": CLUSTER, "InfraCluster": {"status": {"network": {"id": "net-1"}}}}


async def values(template: str, data: Any = DATA) -> dict[str, Any]:
    return await templated_values(template.encode(), data, file="overwrite.yaml")


async def test_the_values_may_be_a_text_or_the_whole_document() -> None:
    assert await values("values: |\n  name: {{ .Cluster.metadata.name }}\n") == {"name": "shop"}
    assert await values("name: {{ .Cluster.metadata.name }}\n") == {"name": "shop"}
    assert await values("values:\n  name: one\n") == {"values": {"name": "one"}}


@pytest.mark.parametrize("empty", ["", "\n", "# nothing\n", "values: |\n", "null\n", "{{ if false }}a: 1{{ end }}"])
async def test_an_empty_file_is_no_values(empty: str) -> None:
    """D15."""
    assert await values(empty) == {}


async def test_what_real_stacks_use() -> None:
    template = """
values: |
  endpoint: {{ printf "%s:%d" .Cluster.spec.controlPlaneEndpoint.host .Cluster.spec.controlPlaneEndpoint.port }}
  pods: {{ index .Cluster.spec.clusterNetwork.pods.cidrBlocks 0 }}
  network: {{ .InfraCluster.status.network.id }}
  {{- range .Cluster.spec.topology.variables }}
  {{- if and (eq .name "zone") (ne .value "") }}
  zone: {{ .value }}-{{ $.Cluster.metadata.name }}
  {{- else if eq .name "text" }}
  text: |
    {{- .value | nindent 4 }}
  {{- end }}
  {{- end }}
  none: {{ .Cluster.spec.absent }}
"""
    assert await values(template) == {
        "endpoint": "shop.example.org:6443",
        "pods": "10.0.0.0/16",
        "network": "net-1",
        "zone": "a-shop",
        "text": "one\ntwo\n",
        "none": "<no value>",
    }


@pytest.mark.parametrize("call", ['env "OCI_PASSWORD"', 'expandenv "$HOME"', 'getHostByName "example.org"'])
async def test_a_template_cannot_read_the_operators_process(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCI_PASSWORD", "opensesame")
    with pytest.raises(ValuesError, match=f"{call.split()[0]} is refused") as error:
        await values(f"a: {{{{ {call} }}}}")
    assert "opensesame" not in str(error.value)


@pytest.mark.parametrize("call", ["genPrivateKey", "randAlphaNum", "genCA"])
async def test_functions_of_cryptography_are_not_offered(call: str) -> None:
    with pytest.raises(ValuesError, match=call):
        await values(f'a: {{{{ {call} "x" 1 }}}}')


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ("a: {{ index .Cluster.spec.absent 0 }}", "nil"),
        ("a: {{ if }}", "overwrite.yaml:1"),
        ("- one\n", "must hold a mapping"),
        ("values: '- one'\n", "overwrite.yaml, values: it must hold a mapping"),
        ("a: [\n", "no YAML"),
        ('{{ range until 2000000 }}{{ "x" }}{{ end }}', "overwrite.yaml|steps|longer"),
    ],
)
async def test_a_bad_template_names_its_file(template: str, said: str) -> None:
    with pytest.raises(ValuesError, match=said):
        await values(template)


async def test_a_file_that_is_no_text_is_refused() -> None:
    with pytest.raises(ValuesError, match="UTF-8"):
        await templated_values(b"\xff\xfe", DATA, file="overwrite.yaml")


async def test_the_templates_of_upstream_stacks_are_understood(upstream: Path) -> None:
    folder = upstream / "cso" / "stacks"
    cluster = {
        **CLUSTER,
        "spec": {**CLUSTER["spec"], "topology": {"variables": []}},
    }
    infra = {"status": {"network": {"id": "n"}, "externalNetwork": {"id": "e"}}}
    found = 0
    for file in (*folder.rglob("overwrite.yaml"), *folder.rglob("cluster-addon-values.yaml")):
        data = {"Cluster": cluster, "InfraCluster": infra}
        assert isinstance(await templated_values(file.read_bytes(), data, file=file.name), dict)
        found += 1
    assert found >= 4
