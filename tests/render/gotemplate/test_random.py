"""Claims about templates nobody wrote: the same as Go, and never anything but our own errors."""

from __future__ import annotations

import re
import string
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.render.engine import render_line
from tests.render.oracles import GoTemplates

from hortus.render.gotemplate import Limits, TemplateError, TemplateSet
from hortus.render.gotemplate.functions import SPRIG

_SLOW = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]

# Data

_TEXTS = st.one_of(
    st.sampled_from(
        ["", "a", "yes", "null", "1", "0x1f", "1e3", "a: b", "- x", "# c", " pad ", "é", "世界", "a\nb", "~"]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=12),
    st.text("ab \n\t:-#'\"{}[]&*!|>%@`,?<", max_size=10),
)
_NUMBERS = st.one_of(
    st.integers(-5, 20).map(float),
    st.sampled_from([1e6, 123456789.0, 1e21, 1e-7, 0.1, 1.5, -2.5]),
    st.floats(allow_nan=False, allow_infinity=False),
)
_KEYS = st.one_of(st.sampled_from(["a", "b", "c", "yes", "1", "a-b", "A", "a1", "a10", "a9"]), _TEXTS)
_SCALARS = st.one_of(st.none(), st.booleans(), _NUMBERS, _TEXTS)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(_KEYS, inner, max_size=4)),
    max_leaves=10,
)
DATA = st.fixed_dictionaries(
    {
        "s": _TEXTS,
        "n": _NUMBERS,
        "b": st.booleans(),
        "l": st.lists(_SCALARS, max_size=4),
        "m": st.dictionaries(_KEYS, _VALUES, max_size=4),
        "v": _VALUES,
        "z": st.none(),
    }
)

# Templates

_FIELDS = st.sampled_from(
    ["s", "n", "b", "l", "m", "v", "z", "m.a", "m.b", "v.a", "v.a.b", "missing", "missing.deep"]
).map(lambda name: f".Values.{name}")
_LITERALS = st.one_of(
    st.integers(-3, 70).map(str),
    st.sampled_from(["true", "false", "nil", "1.5", "1e6", "0x1F", "'a'", "$.Values.s"]),
    st.text(string.ascii_letters + " -_:.,%é", max_size=8).map(lambda text: '"' + text + '"'),
)


def _words(text: str) -> list[str]:
    return text.split()


_ONE = _words("""
toString quote squote upper lower title trim toJson toYaml toYamlPretty toPrettyJson len not empty first last
rest initial reverse uniq compact sortAlpha toStrings int int64 float64 floor ceil kindOf typeOf b64enc b32enc
snakecase camelcase kebabcase untitle swapcase initials nospace html js urlquery print println keys values
fromYaml fromJson fromYamlArray toToml sha1sum until seq add1 base dir ext clean deepCopy list tuple join dict
html toDecimal atoi
""")
_TWO = _words("""
default eq ne lt le gt ge and or add sub mul div mod max min maxf minf addf subf mulf divf join indent nindent
trunc repeat contains hasPrefix hasSuffix trimAll trimPrefix trimSuffix split splitList append prepend has
without index get hasKey pick omit pluck dict list concat coalesce cat printf wrap abbrev merge mergeOverwrite
deepEqual chunk regexMatch regexFind set slice ternary round untilStep semverCompare all any
""")
_FORMATS = st.sampled_from(
    ["%v", "%s", "%d", "%5v|", "%-6s|", "%q", "%x", "%t", "%T", "%05d", "%.2f", "%#v", "%+v", "%e"]
)


def _call(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    part = st.one_of(_FIELDS, _LITERALS, inner.map(lambda text: f"({text})"))
    return st.one_of(
        st.builds("{} {}".format, st.sampled_from(_ONE), part),
        st.builds("{} {} {}".format, st.sampled_from(_TWO), part, part),
        st.builds("{} {} {} {}".format, st.sampled_from(_TWO), part, part, part),
        st.builds('printf "{}" {}'.format, _FORMATS, part),
        st.builds("{} | {}".format, part, st.sampled_from(_ONE)),
        st.builds("{} | {} {}".format, part, st.sampled_from(_TWO), part),
    )


_EXPRESSIONS = st.recursive(st.one_of(_FIELDS, _LITERALS), _call, max_leaves=5)


def _blocks(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    body = st.lists(inner, max_size=3).map("".join)
    return st.one_of(
        st.builds("{{{{ if {} }}}}{}{{{{ else }}}}{}{{{{ end }}}}".format, _EXPRESSIONS, body, body),
        st.builds("{{{{- with {} -}}}} {} {{{{- end }}}}".format, _EXPRESSIONS, body),
        st.builds("{{{{ range {} }}}}{}{{{{ else }}}}{}{{{{ end }}}}".format, _EXPRESSIONS, body, body),
        st.builds("{{{{ range $i, $e := {} }}}}{{{{ $i }}}}{}{{{{ $e }}}}{{{{ end }}}}".format, _EXPRESSIONS, body),
        st.builds("{{{{ $x := {} }}}}{}{{{{ $x }}}}".format, _EXPRESSIONS, body),
    )


_ACTIONS = st.one_of(
    _EXPRESSIONS.map(lambda text: "{{ " + text + " }}"),
    _EXPRESSIONS.map(lambda text: "{{- " + text + " -}}"),
    st.sampled_from([" ", "\n", "text", "  a\n", "{{/* c */}}"]),
)
TEMPLATES = st.lists(st.recursive(_ACTIONS, _blocks, max_leaves=4), min_size=1, max_size=4).map("".join)


_PLACE = re.compile(r":\d+:\d+: executing (\S+) at <.*?>: ")


def _comparable(found: tuple[str, str], template: str) -> tuple[str, str]:
    """Without the place of an error where `and` or `or` stopped early: we name their last argument, Go the one."""
    output, error = found
    return (output, _PLACE.sub(": ", error)) if "and " in template or "or " in template else found


def _is_by_chance(template: str) -> bool:
    """sprig shows the order of a map's iteration, which Go leaves to chance."""
    return "keys " in template or "values " in template


@pytest.mark.oracle
@settings(max_examples=300, deadline=None, suppress_health_check=_SLOW)
@example(template="{{ toToml .Values.v }}", data={"v": None})
@given(template=TEMPLATES, data=DATA)
def test_a_template_of_chance_gives_what_helm_gives(
    template: str, data: dict[str, Any], go_templates: GoTemplates
) -> None:
    if _is_by_chance(template):
        return
    expected = go_templates.ask(kind="helm", templates={"main": template}, main="main", data=data)
    assert _comparable(render_line(template, data), template) == _comparable(expected, template)


@pytest.mark.oracle
@settings(max_examples=150, deadline=None, suppress_health_check=_SLOW)
@given(template=TEMPLATES, data=DATA, missing=st.sampled_from(["default", "zero", "error"]))
def test_a_plain_template_gives_what_go_gives(
    template: str, data: dict[str, Any], missing: str, go_templates: GoTemplates
) -> None:
    if _is_by_chance(template) or any(name in template for name in ("toYaml", "toToml", "fromYaml")):
        return
    given_data = {"Values": data}
    output, problem = go_templates.ask(
        kind="template", templates={"t": template}, main="t", data=given_data, missingkey=missing, sprig=True
    )
    templates = TemplateSet(SPRIG, missing=missing)
    try:
        templates.add("t", template)
        found = (templates.execute("t", given_data), "")
    except TemplateError as error:
        found = ("", str(error))
    assert _comparable(found, template) == _comparable(("" if problem else output, problem), template)


PIECES = st.sampled_from(
    [
        *_words(
            "{{ }} {{- -}} if else end range with define template block nil ( ) | . $ $x := = , 1 1.5 0x true upper"
        ),
        *_words("printf .a /* */ break continue é \\ ' ` - + # 1e text 'c' `b`"),
        *(" ", "\n", '"', '"a"', "\x00"),
    ]
)
_SMALL = Limits(output=100_000, steps=20_000, depth=50, seconds=2.0, text=100_000)


@settings(max_examples=600, deadline=None)
@given(st.one_of(st.lists(PIECES, max_size=25).map("".join), st.lists(PIECES, max_size=12).map(" ".join), st.text()))
def test_whatever_is_given_for_a_template_ends_in_text_or_our_own_error(text: str) -> None:
    output, error = render_line(text, {"a": 1}, limits=_SMALL)
    assert not output or not error


@pytest.mark.parametrize(
    "text",
    [
        "{{" + "(" * 5000 + "1" + ")" * 5000 + "}}",
        "{{ if true }}" * 5000 + "{{ end }}" * 5000,
        "{{/* c */}}" * 20_000,
        '{{ define "a" }}{{ template "a" . }}{{ end }}{{ template "a" . }}',
        '{{ define "a" }}{{ include "a" . }}{{ end }}{{ include "a" . }}',
        "{{ range until 1000 }}{{ range until 1000 }}{{ range until 1000 }}{{ end }}{{ end }}{{ end }}",
        '{{ range until 1000 }}{{ repeat 1000 "x" }}{{ end }}',
        '{{ repeat 1000000000 "x" }}',
        '{{ printf "%1000000000d" 1 }}{{ printf "%99999999s" "" }}',
        "{{ until 1000000000 }}",
        '{{ indent 1000000000 "x" }}',
        '{{ $x := "ab" }}{{ range until 60 }}{{ $x = print $x $x }}{{ end }}',
        '{{ $x := list "a" }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}',
        '{{ $x := list "a" }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}',
        '{{ $x := list "a" }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ toYaml $x }}',
        '{{ $x := list "a" }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ toYamlPretty $x }}',
        '{{ $x := list "a" }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ toToml (dict "a" $x) }}',
        '{{ $x := list "a" }}{{ range until 60 }}{{ $x = list $x $x }}{{ end }}{{ deepCopy $x }}',
        '{{ $x := list "a" }}{{ $y := list "a" }}{{ range until 60 }}{{ $x = list $x $x }}'
        "{{ $y = list $y $y }}{{ end }}{{ deepEqual $x $y }}",
        '{{ $x := dict "a" 1 }}{{ $y := dict "b" 1 }}{{ range until 60 }}{{ $x = dict "a" $x "b" $x }}'
        '{{ $y = dict "a" $y "b" $y }}{{ end }}{{ merge $x $y | len }}',
        '{{ $x := list "a" }}{{ range until 60 }}{{ $x = concat $x $x }}{{ end }}{{ len $x }}',
        '{{ join "x" (until 100000) | len }}{{ $s := repeat 90000 "x" }}{{ $l := list }}{{ range until 300 }}'
        '{{ $l = append $l $s }}{{ end }}{{ join "" $l | len }}',
        '{{ tpl (repeat 500 "{{ if true }}") . }}',
        '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toJson $d }}',
        '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}',
        '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toYaml $d }}',
        '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ deepCopy $d }}',
        '{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ merge (dict) $d $d }}',
        '{{ regexMatch "^(a+)+$" (repeat 5000 "a") }}{{ regexMatch "^(a|a)*b" (repeat 3000 "a") }}',
        '{{ regexReplaceAll "a{1000}{1000}" "x" "y" }}',
        '{{ fromJson (repeat 100000 "[") }}{{ fromYaml (repeat 5000 "[") }}',
        '{{ fromYaml "a: &a [x,x]\\nb: &b [*a,*a]\\nc: &c [*b,*b]" }}',
        '{{ "x" | replace "" (repeat 10000 "y") | replace "" (repeat 10000 "y") }}',
        '{{ semverCompare (repeat 5000 ">1 ") "1.0.0" }}{{ splitList "" (repeat 90000 "x") | len }}',
        "{{ seq 1 100000000 }}",
        "{{ randAlphaNum 1000000000 }}",
        '{{ wrap 1 (repeat 50000 "a ") | len }}',
        '{{ cat (until 100000) | len }}{{ shuffle (repeat 1000 "x") | len }}',
    ],
)
def test_a_template_that_wants_too_much_is_stopped(text: str) -> None:
    output, error = render_line(text, {}, limits=_SMALL)
    assert len(output) < 2_000_000
    assert not output or not error
