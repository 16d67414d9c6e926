"""Claims about the quick way to trees: where it gives trees, they are the parser's, and equal texts share them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.render.charts import NAMES, large
from tests.render.charts import example as chart_example
from tests.render.corpus import TOPICS, cases
from tests.render.gotemplate.test_random import PIECES, TEMPLATES

from hortus.render.gotemplate import ExecutionError, ParseError, TemplateSet, nodes, parser
from hortus.render.gotemplate.calls import Function
from hortus.render.gotemplate.skimming import MAIN, Skimmer
from hortus.render.helm.functions import HELM, REFUSED

NAME = "c/templates/main"


def shown(node: Any, base: int = 0) -> Any:
    """A node with the positions that errors name, counted from the beginning of the text."""
    if isinstance(node, list):
        return [shown(part, base) for part in node]
    if isinstance(node, nodes.Nodes):
        return shown(node.nodes)
    if not isinstance(node, nodes.Node):
        return node
    base = getattr(node, "base", base)
    fields = [name for kind in type(node).__mro__[:-2] for name in getattr(kind, "__slots__", ()) if name != "base"]
    named = {name: shown(getattr(node, name), base) for name in fields}
    is_expression = not isinstance(node, nodes.Text | nodes.Action | nodes.Branch | nodes.Jump)
    return type(node).__name__, base + node.position if is_expression else 0, named


def check(text: str, skimmer: Skimmer) -> bool:
    """Returns True if the skimmer read the text; its trees must equal those of the parser."""
    trees = skimmer.trees(text)
    if trees is None or NAME in trees:
        return False
    trees[NAME] = trees.pop(MAIN)
    expected = parser.parse(NAME, text, HELM, refused=REFUSED)
    assert {name: shown(tree.root) for name, tree in trees.items()} == {
        name: shown(tree.root) for name, tree in expected.items()
    }
    assert {name: tree.slots for name, tree in trees.items()} == {name: tree.slots for name, tree in expected.items()}
    return True


def is_refused(text: str) -> bool:
    try:
        parser.parse(NAME, text, HELM, refused=REFUSED)
    except ParseError:
        return True
    return False


@settings(max_examples=500, deadline=None)
@example("{{ if .a }}{{ else if .b }}{{ $x := 1 }}{{ else }}{{ $x }}{{ end }}")
@example("{{ range .a }}{{ else }}{{ break }}{{ end }}")
@example("{{- - 1 }}{{ 1 - -}} a")
@example('{{- /* "}} */ -}} a {{ "}}" }}{{ `{{` }}')
@example('{{ block "a" ($x := 1) }}{{ $x }}{{ end }}{{ $x }}')
@example('{{ define "a" }}{{ end }}{{ define "a" }}x{{ end }}{{ define "a" }}y{{ end }}')
@given(st.one_of(TEMPLATES, st.lists(PIECES, max_size=20).map(" ".join), st.lists(PIECES, max_size=20).map("".join)))
def test_texts_of_chance_have_the_trees_of_the_parser(text: str) -> None:
    skimmer = Skimmer(HELM, REFUSED)
    try:
        taken = check(text, skimmer)
    except ParseError:
        pytest.fail("taken here, refused by the parser")
    assert check(text, skimmer) == taken


def test_texts_of_the_corpus_have_the_trees_of_the_parser() -> None:
    skimmer = Skimmer(HELM, REFUSED)
    charts = [chart_example(name).files for name in NAMES] + [large(2)]
    texts = [
        data.decode("utf-8", "replace") for files in charts for name, data in files.items() if "templates/" in name
    ]
    texts += [case.template for topic in TOPICS for case in cases(topic)]
    left = [text for text in texts if not check(text, skimmer)]
    assert [text for text in left if not is_refused(text)] == []


def test_copies_of_one_text_share_what_they_define_and_keep_their_names() -> None:
    templates = TemplateSet({})
    text = '{{ define "lib" }}\n{{ index .x 1 }}{{ end }}{{ index .y 1 }}'
    templates.add("a/_lib.tpl", text)
    first = dict(templates.templates)
    templates.add("b/_lib.tpl", text)
    second = templates.templates
    assert second["b/_lib.tpl"].code is first["a/_lib.tpl"].code
    assert second["lib"].code is first["lib"].code
    for name, said in (
        ("lib", 'template: b/_lib.tpl:2:3: executing "lib" at <index .x 1>'),
        ("a/_lib.tpl", 'template: a/_lib.tpl:2:28: executing "a/_lib.tpl" at <index .y 1>'),
        ("b/_lib.tpl", 'template: b/_lib.tpl:2:28: executing "b/_lib.tpl" at <index .y 1>'),
    ):
        with pytest.raises(ExecutionError) as problem:
            templates.execute(name, {"x": 1.5, "y": 1.5})
        assert str(problem.value).startswith(said)


def test_an_error_in_an_included_template_names_its_own_text_and_the_one_around_it() -> None:
    templates = TemplateSet({})
    templates.add("lib", '{{ define "inner" }}{{ index . 1 }}{{ end }}')
    templates.add("main", ' {{ template "inner" .x }}{{ index .x 2 }}')
    with pytest.raises(ExecutionError, match=r'^template: lib:1:23: executing "inner" at <index \. 1>'):
        templates.execute("main", {"x": 1.5})
    templates.add("lib", '{{ define "inner" }}{{ end }}{{ define "other" }}{{ end }}x')
    templates.add("main", ' {{ template "other" .x }}{{ index .x 2 }}')
    with pytest.raises(ExecutionError, match=r'^template: main:1:29: executing "main" at <index \.x 2>'):
        templates.execute("main", {"x": 1.5})


def test_a_text_is_refused_if_it_holds_more_than_the_template_of_its_own_name() -> None:
    templates = TemplateSet({})
    text = '{{ define "a" }}one{{ end }}'
    templates.add("b", text)
    templates.add("a", text)
    assert templates.execute("a", {}) == "one"
    with pytest.raises(ParseError, match='multiple definition of template "a"'):
        templates.add("a", text + "two")
    templates.add("b", text + "two")
    assert templates.execute("b", {}) == "two"


def test_code_of_a_definition_and_of_a_branch_is_made_when_it_is_called() -> None:
    used: list[str] = []

    class Counting(dict[str, Function]):
        def __getitem__(self, name: str) -> Function:
            used.append(name)
            return super().__getitem__(name)

    templates = TemplateSet()
    templates.functions = Counting(templates.functions)
    templates.add("t", '{{ define "unused" }}{{ len . }}{{ end }}{{ if .a }}{{ html . }}{{ else }}{{ not . }}{{ end }}')
    assert used == []
    assert templates.execute("t", {"a": False}) == "false"
    assert used == ["not"]
