"""Makes a scenario of options on a command line, through the same checks as a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hortus.simulation.load import Scenario, ScenarioError, parse

_LISTS = ("clients", "verbs", "resources")


def scenario_of(name: str, phase: Mapping[str, Any], *, seed: int, project: str) -> Scenario:
    """A scenario of one phase. Raises ScenarioError, with options in place of paths."""
    document = {"name": name, "seed": seed, "project": project, "phases": [{name: dict(phase)}]}
    try:
        return parse(document)
    except ScenarioError as error:
        text = str(error)
        for path in (f"phases[0].{name}.", "phases[0]."):
            if text.startswith(path):
                raise ScenarioError(f"--{text.removeprefix(path)}") from None
        raise


def fault_of(text: str) -> dict[str, Any]:
    """`latency delay=200ms share=50%` as a file would say it. Raises ScenarioError."""
    kind, *words = text.split()
    found: dict[str, Any] = {"fault": kind}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise ScenarioError(f"fault {text!r}: {word!r} must be SETTING=VALUE, as in 'latency delay=200ms'")
        found[name] = _value(name, value)
    return found


def _value(name: str, value: str) -> Any:
    if name in _LISTS:
        return value.split(",")
    if value in ("true", "false"):
        return value == "true"
    return int(value) if value.isdigit() else value


def weights_of(text: str) -> dict[str, Any]:
    """`rotate=4,delete=0` as a file would say it. Raises ScenarioError."""
    found = {}
    for word in filter(None, text.split(",")):
        name, equals, value = word.partition("=")
        if not equals:
            raise ScenarioError(f"--weights: {word!r} must be OPERATION=NUMBER, as in 'rotate=4,fail=2'")
        found[name.strip()] = value.strip()
    return found


def metrics_of(pages: Sequence[str]) -> dict[str, str]:
    """`controllers=http://...` each. Raises ScenarioError."""
    found = {}
    for page in pages:
        name, equals, url = page.partition("=")
        if not equals or not url.startswith(("http://", "https://", "unix:")):
            raise ScenarioError(
                f"--metrics: {page!r} must be PROCESS=URL, as in controllers=http://127.0.0.1:8080/metrics"
            )
        found[name] = url
    return found
