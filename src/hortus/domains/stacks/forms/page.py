"""A form for Clusters as one page: a control for each variable, and the manifest as it is filled in.

The page loads nothing and sends nothing. Limits of the schema are those of the controls, so a browser names what is
wrong; the API server judges the manifest in the end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, Final

from msgspec import UNSET

from hortus.domains.stacks.forms.classes import ClassVariable, ClusterForm, VariableSchema, plain
from hortus.domains.stacks.forms.manifest import machines

_STYLE: Final = """
:root{color-scheme:light dark}body{font:15px/1.45 system-ui,sans-serif;margin:0 auto;max-width:76rem;padding:1.5rem}
main{display:grid;gap:2rem;grid-template-columns:minmax(20rem,1fr) minmax(20rem,1fr)}h1{font-size:1.25rem}
fieldset{border:1px solid #8886;border-radius:6px;margin:0 0 .8rem;min-width:0}legend{font-weight:600}
label{display:block;margin:.35rem 0}input:not([type=checkbox]),select,textarea{box-sizing:border-box;font:inherit;
width:100%}small{color:#777;display:block}:invalid{outline:2px solid #b3261e}
pre{background:#8881;border-radius:6px;overflow:auto;padding:1rem;position:sticky;top:1rem}
@media(max-width:50rem){main{grid-template-columns:1fr}}
"""
_SCRIPT: Final = r"""
const form = document.forms[0], base = JSON.parse(document.getElementById("base").textContent);
const plain = /^[A-Za-z_][\w.\/-]*$/, words = /^(true|false|null|yes|no|on|off|y|n)$/i;
const key = name => plain.test(name) && !words.test(name) ? name : JSON.stringify(name);
const isMap = value => value !== null && typeof value === "object" && !Array.isArray(value);
function yaml(value, pad) {
  if (Array.isArray(value) && value.length)
    return value.map(one => "\n" + pad + "-" + (isMap(one) && Object.keys(one).length
      ? " " + yaml(one, pad + "  ").trimStart() : yaml(one, pad + "  "))).join("");
  if (isMap(value) && Object.keys(value).length)
    return Object.entries(value).map(([name, one]) => "\n" + pad + key(name) + ":" + yaml(one, pad + "  ")).join("");
  return " " + JSON.stringify(value);
}
function read(control) {
  const kind = control.dataset.kind;
  control.setCustomValidity("");
  if (kind === "boolean")
    return "touched" in control.dataset || control.hasAttribute("data-needed") ? control.checked : undefined;
  if (control.value === "" && !control.hasAttribute("data-needed")) return undefined;
  if (kind === "string") return control.value;
  try { return JSON.parse(control.value); }
  catch { control.setCustomValidity("a value in JSON is expected"); return undefined; }
}
function put(into, path, value) {
  for (const name of path.slice(0, -1)) into = into[name] ??= {};
  into[path[path.length - 1]] = value;
}
function show() {
  for (const box of form.querySelectorAll("[data-use]"))
    box.closest("fieldset").querySelector("div").querySelectorAll("input,select,textarea")
      .forEach(one => { one.disabled = !box.checked; });
  const made = structuredClone(base), found = {};
  for (const control of form.elements) {
    if (control.dataset.place && control.value) put(made, JSON.parse(control.dataset.place),
      control.type === "number" ? Number(control.value) : control.value);
    if (!control.dataset.path || control.disabled) continue;
    const value = read(control);
    if (value !== undefined) put(found, JSON.parse(control.dataset.path), value);
  }
  const variables = Object.entries(found).map(([name, value]) => ({ name, value }));
  if (variables.length) made.spec.topology.variables = variables;
  document.querySelector("pre").textContent = yaml(made, "").trimStart() + "\n";
  document.querySelector("#valid").textContent = form.checkValidity() ? "" : "Some values are not valid yet.";
}
form.addEventListener("input", event => { event.target.dataset.touched = ""; show(); });
form.addEventListener("submit", event => event.preventDefault());
document.querySelector("#copy").addEventListener("click",
  () => navigator.clipboard.writeText(document.querySelector("pre").textContent));
show();
"""


def page(form: ClusterForm, name: str, namespace: str) -> str:
    """The whole document."""
    topology: dict[str, Any] = {**form.topology(namespace), **machines(form)}
    base = {
        "apiVersion": form.api_version,
        "kind": "Cluster",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"topology": topology},
    }
    title = escape(f"A Cluster of class {form.class_name}")
    parts = [
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1><main><form>",
        *_cluster(form, name),
        *(part for one in form.variables for part in _variable(one)),
        '</form><div><p><button type="button" id="copy">Copy</button> <strong id="valid"></strong></p><pre></pre>',
        f'</div></main><script type="application/json" id="base">{_embedded(base)}</script>',
        f"<script>{_SCRIPT}</script></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _cluster(form: ClusterForm, name: str) -> Iterator[str]:
    yield "<fieldset><legend>Cluster</legend>"
    yield (
        f'<label>Name<input data-place="{_path("metadata", "name")}" value="{escape(name)}" required maxlength="63" '
        'pattern="[a-z0-9]([-a-z0-9]*[a-z0-9])?"></label>'
    )
    places: list[tuple[str, Sequence[str | int]]] = [
        ("Machines of the control plane", ("spec", "topology", "controlPlane", "replicas"))
    ]
    for number, worker in enumerate(form.workers):
        at = ("spec", "topology", "workers", "machineDeployments", number, "replicas")
        places.append((f"Workers of class {worker}", at))
    for words, place in places:
        yield f'<label>{escape(words)}<input type="number" min="0" value="1" data-place="{_path(*place)}"></label>'
    yield "</fieldset>"


def _variable(variable: ClassVariable) -> Iterator[str]:
    name = escape(variable.name)
    use = "" if variable.required else f' <input type="checkbox" data-use aria-label="set {name}">'
    yield f"<fieldset><legend>{name}{use}</legend>"
    if variable.schema.description:
        yield f"<small>{escape(variable.schema.description)}</small>"
    yield f"<div>{_control(variable.schema, (variable.name,), needed=True)}</div></fieldset>"


def _control(schema: VariableSchema, path: tuple[str, ...], *, needed: bool) -> str:
    """The control of a value, or those of an object's properties."""
    facts = f"<small>{escape('; '.join(schema.facts))}</small>"
    if schema.type == "object" and schema.properties:
        rows = (
            f"<label>{escape(name)}{' (required)' if name in schema.required else ''}"
            f"{_described(one)}{_control(one, (*path, name), needed=needed and name in schema.required)}</label>"
            for name, one in schema.properties.items()
        )
        return "".join(rows)
    # A checkbox cannot be empty: with a default it has a value, as other controls have.
    is_needed = needed or (schema.type == "boolean" and not schema.enum and schema.has_default)
    common = f'data-path="{_path(*path)}" aria-label="{escape(path[-1])}"' + (" data-needed" if is_needed else "")
    if schema.enum:
        kind = "string" if schema.type == "string" else "json"
        return f'<select {common} data-kind="{kind}">{_options(schema, needed=needed)}</select>{facts}'
    if schema.type == "boolean":
        checked = " checked" if schema.default is True else ""
        return f'<input type="checkbox" {common} data-kind="boolean"{checked}>{facts}'
    if schema.type in ("integer", "number", "string"):
        step = "1" if schema.type == "integer" else "any"
        kind = 'data-kind="string"' if schema.type == "string" else f'type="number" step="{step}" data-kind="json"'
        return f"<input {common} {kind}{_limits(schema)}{_value(schema, needed=needed)}>{facts}"
    given = json.dumps(schema.given) if needed or schema.has_default else ""
    return f'<textarea rows="3" {common} data-kind="json">{escape(given)}</textarea>{facts}'


def _described(schema: VariableSchema) -> str:
    return f"<small>{escape(schema.description)}</small>" if schema.description else ""


def _options(schema: VariableSchema, *, needed: bool) -> str:
    is_text = schema.type == "string"
    chosen = schema.given if needed or schema.has_default else None
    found = [] if needed else ["<option></option>"]
    for one in schema.enum or ():
        value = str(one) if is_text else json.dumps(one)
        mark = " selected" if one == chosen else ""
        found.append(f'<option value="{escape(value)}"{mark}>{escape(str(one))}</option>')
    return "".join(found)


def _limits(schema: VariableSchema) -> str:
    limits = {
        "min": plain(schema.minimum),
        "max": plain(schema.maximum),
        "minlength": schema.min_length,
        "maxlength": schema.max_length,
        # A schema's pattern is found anywhere in the text, that of a control is all of it.
        "pattern": f".*(?:{schema.pattern}).*" if schema.pattern is not None else None,
    }
    return "".join(f' {name}="{escape(str(limit))}"' for name, limit in limits.items() if limit is not None)


def _value(schema: VariableSchema, *, needed: bool) -> str:
    least = plain(schema.minimum) if needed and schema.minimum is not None else ""
    given = schema.default if schema.has_default else least
    hint = "" if schema.example is UNSET else f' placeholder="{escape(str(schema.example))}"'
    return f' value="{escape(str(given))}"{hint}'


def _path(*names: str | int) -> str:
    return escape(json.dumps(names))


def _embedded(value: Any) -> str:
    """JSON inside of a script element, which no text in it can end."""
    return json.dumps(value).replace("<", "\\u003c")
