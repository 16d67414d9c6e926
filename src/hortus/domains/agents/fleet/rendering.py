"""The InstanaAgent of one cluster: the template, what the expression says of the cluster, and nothing unchecked.

    values = cluster_values(profile)
    agent = render(configuration, values)       # raises RenderError, which names field, value and fix

The result is checked by the schema of InstanaAgent's CRD: a builder never meets what an API server would refuse.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

import msgspec
import orjson

from hortus.domains.agents.defaults import defaulted
from hortus.domains.agents.options import OPTIONS_ANNOTATION
from hortus.domains.agents.types import AgentConfiguration, InstanaAgent, InstanaName
from hortus.domains.inventory.types import ClusterProfile, ProfileLabel, Property
from hortus.kube.objects import Object
from hortus.kube.patches import apply_merge_patch

if TYPE_CHECKING:
    from hortus.schema import Structural

GENERATION: Final = 1
"""The generation in labels of built objects: the same in all clusters, and no reason to write them again."""
_SHOWN: Final = 3
"""Problems that one message names."""


class RenderError(ValueError):
    """A configuration that gives one cluster no valid agent."""


class ClusterValues(msgspec.Struct, frozen=True, rename="camel"):
    """The variable `cluster` of expressions: every field is there, empty where nothing is known."""

    name: str
    display_name: str = ""
    labels: dict[str, str] = msgspec.field(default_factory=dict)
    provider: str = ""
    region: str = ""
    purpose: str = ""
    kubernetes: str = ""
    """The minor version, such as 1.33."""
    zones: tuple[str, ...] = ()
    nodes: int = 0
    properties: dict[str, str] = msgspec.field(default_factory=dict)


def cluster_values(profile: ClusterProfile) -> ClusterValues:
    """The values of a cluster, out of the inventory."""
    labels = profile.metadata.labels
    properties = {one.name: one.value for one in profile.status.properties}
    nodes = properties.get(Property.NODES, "")
    return ClusterValues(
        name=profile.metadata.name,
        display_name=profile.spec.display_name or profile.metadata.name,
        labels=labels,
        provider=labels.get(ProfileLabel.PROVIDER, ""),
        region=labels.get(ProfileLabel.REGION, ""),
        purpose=labels.get(ProfileLabel.PURPOSE, ""),
        kubernetes=labels.get(ProfileLabel.KUBERNETES, ""),
        zones=tuple(zone for zone in properties.get(Property.ZONES, "").split(",") if zone),
        nodes=int(nodes) if nodes.isdecimal() else 0,
        properties=properties,
    )


def render(configuration: AgentConfiguration, cluster: ClusterValues) -> InstanaAgent:
    """The agent of a cluster, with the operator's defaults. Raises RenderError."""
    spec = configuration.spec
    changes = per_cluster(spec.per_cluster, cluster) if spec.per_cluster else {}
    options = configuration.metadata.annotations.get(OPTIONS_ANNOTATION)
    obj = {
        "apiVersion": InstanaAgent.FACTS.api_version,
        "kind": InstanaAgent.FACTS.name,
        "metadata": {
            "name": spec.agent_name,
            "namespace": spec.agent_namespace,
            "generation": GENERATION,
            "annotations": {} if options is None else {OPTIONS_ANNOTATION: options},
        },
        # A copy: the check fills in defaults, and the template is the cache's.
        "spec": orjson.loads(orjson.dumps(apply_merge_patch(spec.template, changes))),
    }
    _check(obj)
    agent = defaulted(msgspec.convert(obj, InstanaAgent))
    if agent.spec.cluster.name:
        return agent
    # The one fact that every cluster needs: the backend distinguishes clusters by it.
    named = InstanaName(name=cluster.name)
    return msgspec.structs.replace(agent, spec=msgspec.structs.replace(agent.spec, cluster=named))


def check_expression(text: str) -> None:
    """Raises RenderError for an expression that cannot be compiled."""
    if text:
        _program(text)


def per_cluster(text: str, cluster: ClusterValues) -> Object:
    """The part of the spec that an expression says for a cluster. Raises RenderError."""
    from hortus.schema.cel import CelError

    program = _program(text)
    try:
        found = program.run({"cluster": orjson.loads(msgspec.json.encode(cluster))})
    except CelError as error:
        raise RenderError(f"spec.perCluster: {error}: correct the expression, or label the cluster") from None
    if not isinstance(found, dict):
        raise RenderError(f"spec.perCluster: the result is {type(found).__name__}: it must be a map, such as {{}}")
    return found


@functools.lru_cache(maxsize=256)
def _program(text: str) -> Any:
    from hortus.schema.cel import CompileError
    from hortus.schema.cel.program import compile_expression

    try:
        return compile_expression(text, {"cluster": "map"})
    except CompileError as error:
        raise RenderError(f"spec.perCluster: {error}") from None


@functools.cache
def _schema() -> Structural:
    from hortus.schema import Structural, schema

    return Structural.compile(schema(InstanaAgent))


def _check(obj: Object) -> None:
    """Raises RenderError where the CRD of InstanaAgent would refuse the object or drop a field of it."""
    unknown = [f"{path}: unknown field" for path in _schema().prune(obj)]
    _schema().default(obj)
    problems = [*unknown, *map(str, _schema().validate(obj))]
    if problems:
        more = f"; and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
        raise RenderError(f"spec.template with spec.perCluster: {'; '.join(problems[:_SHOWN])}{more}")
