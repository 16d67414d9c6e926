"""Write the table of template functions into docs/rendering.md: `python tools/function_table.py`.

The table comes from the functions themselves; a test compares the page with it.
"""

from __future__ import annotations

from pathlib import Path

from hortus.render.gotemplate.builtin import BUILTIN
from hortus.render.gotemplate.calls import Function, Functions
from hortus.render.gotemplate.functions import REFUSED
from hortus.render.gotemplate.functions.certificates import CERTIFICATES
from hortus.render.gotemplate.functions.dates import DATES
from hortus.render.gotemplate.functions.dicts import DICTS
from hortus.render.gotemplate.functions.documents import DOCUMENTS
from hortus.render.gotemplate.functions.encodings import ENCODINGS
from hortus.render.gotemplate.functions.lists import LISTS
from hortus.render.gotemplate.functions.maths import MATHS
from hortus.render.gotemplate.functions.regular import REGULAR
from hortus.render.gotemplate.functions.secrets import SECRETS
from hortus.render.gotemplate.functions.strings import STRINGS
from hortus.render.gotemplate.functions.urls import URLS
from hortus.render.gotemplate.functions.versions import VERSIONS
from hortus.render.gotemplate.functions.words import WORDS
from hortus.render.helm.functions import HELM

PAGE = Path(__file__).resolve().parent.parent / "docs" / "rendering.md"
BEGIN, END = "<!-- functions: begin -->", "<!-- functions: end -->"
_OWN = ("include", "tpl", "required", "fail", "lookup", "getHostByName")
_NOTES = {"getHostByName": " (always the empty string: names are not resolved)"}
_TOPICS: list[tuple[str, Functions]] = [
    ("Go's own", BUILTIN),
    ("Helm's own", {name: HELM[name] for name in _OWN}),
    ("YAML, JSON and TOML", {**ENCODINGS, **DOCUMENTS}),
    ("Strings", {**STRINGS, **WORDS}),
    ("Numbers", MATHS),
    ("Lists", LISTS),
    ("Maps and defaults", DICTS),
    ("Dates", DATES),
    ("Regular expressions", REGULAR),
    ("Versions and URLs", {**VERSIONS, **URLS}),
    ("Digests, passwords, chance", SECRETS),
    ("Keys and certificates", CERTIFICATES),
]


def _shown(function: Function) -> str:
    names = [parameter.name for parameter in function.fixed]
    if function.variadic is not None:
        names.append(f"...{function.variadic.name}")
    plain = [name.replace("interface {}", "any").replace("reflect.Value", "any") for name in names]
    return f"`{function.name}({', '.join(plain)})`{_NOTES.get(function.name, '')}"


def table() -> str:
    """The table: a topic a row, functions with the types of their arguments."""
    rows = ["| topic | functions |", "|---|---|"]
    for topic, functions in _TOPICS:
        rows.append(f"| {topic} | {', '.join(_shown(functions[name]) for name in sorted(functions))} |")
    rows.append(f"| Refused when a template is parsed | {', '.join(f'`{name}`' for name in sorted(REFUSED))} |")
    rows[-1] = rows[-1].replace("`getHostByName`", "`getHostByName` (outside charts)")
    return "\n".join(rows)


def main() -> None:
    text = PAGE.read_text()
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    PAGE.write_text(f"{before}{BEGIN}\n{table()}\n{END}{after}")


if __name__ == "__main__":
    main()
