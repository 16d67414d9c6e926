"""The agent's configuration out of several sources: ConfigMaps, the text of the CR, and an object in its options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hortus.domains.agents.builders.facts import InstanaFacts
from hortus.domains.agents.builders.names import AnyAgent
from hortus.domains.agents.options import UnusableOptions
from hortus.kube import yaml
from hortus.kube.objects import Object


def configuration(agent: AnyAgent, facts: InstanaFacts) -> str:
    """The agent's configuration: the text of the CR as it is, unless options merge something into it.

    ConfigMaps come first, by name, then the text, then the object: of two values at one place the later one stays,
    objects are merged. Raises UnusableOptions.
    """
    text, options = agent.spec.agent.configuration_yaml, facts.options
    sources = sorted(facts.config_sources.items()) if options.merge_configurations else []
    if not sources and not options.configuration:
        return text
    together: Object = {}
    for name, source in [*((f"ConfigMap {name}", source) for name, source in sources), ("configuration_yaml", text)]:
        together = _merged(together, _mapping(agent, name, source))
    return yaml.dump(_merged(together, options.configuration))


def _mapping(agent: AnyAgent, name: str, text: str) -> Object:
    where = f"{name} of {agent.FACTS.name} {agent.metadata.namespace}/{agent.metadata.name}"
    try:
        found = yaml.load(text)
    except yaml.YamlError as error:
        raise UnusableOptions(f"{where} is no YAML: {error}; mend it so that it can be merged") from None
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise UnusableOptions(f"{where} is no mapping: write `key: value` lines so that it can be merged")
    return found


def _merged(under: Mapping[str, Any], over: Mapping[str, Any]) -> Object:
    found = dict(under)
    for key, value in over.items():
        match found.get(key), value:
            case dict(before), dict():
                found[key] = _merged(before, value)
            case _:
                found[key] = value
    return found
