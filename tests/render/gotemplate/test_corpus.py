"""Claims about single templates: byte for byte what Helm's engine gives, errors included."""

from __future__ import annotations

import base64
import json
import re

import pytest
from tests.render.corpus import FILES, FOLDER, TOPICS, cases, values
from tests.render.engine import render_line
from tests.render.oracles import GoTemplates

from hortus.render.gotemplate.functions import REFUSED, SPRIG
from hortus.render.helm.functions import HELM


@pytest.mark.parametrize("topic", TOPICS)
def test_every_template_of_the_corpus_gives_what_helm_gives(topic: str) -> None:
    golden = json.loads((FOLDER / "golden" / f"{topic}.json").read_text())
    given = values()
    wrong = []
    for case in cases(topic):
        output, error = render_line(case.template, given, files=FILES)
        wanted = golden[case.template]
        if (output, error) != (wanted.get("output", ""), wanted.get("error", "")):
            wrong.append((f"{topic}.txt:{case.line}", case.template[:80], (output or error)[:200], wanted))
    assert not wrong


@pytest.mark.oracle
@pytest.mark.parametrize("topic", TOPICS)
def test_the_golden_files_are_what_the_real_engine_gives(topic: str, go_templates: GoTemplates) -> None:
    golden = json.loads((FOLDER / "golden" / f"{topic}.json").read_text())
    files = {name: base64.b64encode(data).decode() for name, data in FILES.items()}
    given = values()
    for case in cases(topic):
        found = go_templates.ask(kind="helm", templates={"main": case.template}, main="main", data=given, files=files)
        assert found == (golden[case.template].get("output", ""), golden[case.template].get("error", ""))


def test_the_corpus_calls_every_function() -> None:
    called = set(re.findall(r"[A-Za-z0-9_]+", " ".join(case.template for topic in TOPICS for case in cases(topic))))
    assert [name for name in sorted(HELM) if name not in called] == []


@pytest.mark.oracle
def test_every_function_of_sprig_is_there_with_its_go_signature_or_refused(go_templates: GoTemplates) -> None:
    signatures = json.loads(go_templates.ask(kind="signatures")[0])
    assert set(signatures) - REFUSED == set(SPRIG)
    for name, function in SPRIG.items():
        names = [parameter.name for parameter in function.fixed]
        names += [f"...{function.variadic.name}"] if function.variadic else []
        assert signatures[name].startswith(f"func({', '.join(names)})"), name


@pytest.mark.parametrize("name", ["env", "expandenv"])
def test_a_function_that_reaches_the_process_is_refused_when_parsing(name: str) -> None:
    output, error = render_line(f'{{{{ if false }}}}{{{{ {name} "HOME" }}}}{{{{ end }}}}', {})
    assert not output
    assert f'function "{name}" not defined (refused' in error
