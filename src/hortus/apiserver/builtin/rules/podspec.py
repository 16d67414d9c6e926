"""Defaults and validation of a pod spec, in pods and in every template."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from hortus.apiserver.builtin.names import environment_name, port_name, port_number
from hortus.apiserver.builtin.problems import duplicate, every, forbidden, invalid, not_found, required
from hortus.apiserver.builtin.rules.resources import requirements
from hortus.apiserver.builtin.rules.selectors import label_selector, labels, not_negative, positive
from hortus.apiserver.resources.definition import FieldProblem
from hortus.kube.naming import dns_label, dns_subdomain
from hortus.kube.objects import Object

_CONTAINER_LISTS = ("initContainers", "containers")
_ACTIONS = ("exec", "httpGet", "tcpSocket", "grpc")
_SOURCES = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")


def set_defaults(spec: Object) -> None:
    """Fills in the defaults that depend on other fields of the spec; static defaults are set already."""
    for container in containers(spec):
        _default_container(container, host_network=bool(spec.get("hostNetwork")))
    for volume in spec.get("volumes") or []:
        if len(volume) == 1:
            volume["emptyDir"] = {}
    account = spec.get("serviceAccountName") or spec.get("serviceAccount")
    if account:
        spec["serviceAccountName"] = spec["serviceAccount"] = account


def containers(spec: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every container of a pod spec, of all three sorts."""
    for key in (*_CONTAINER_LISTS, "ephemeralContainers"):
        yield from spec.get(key) or []


def _default_container(container: dict[str, Any], *, host_network: bool) -> None:
    if not container.get("imagePullPolicy"):
        image = container.get("image") or ""
        container["imagePullPolicy"] = "Always" if is_latest(image) else "IfNotPresent"
    if host_network:
        for port in container.get("ports") or []:
            if not port.get("hostPort"):
                port["hostPort"] = port.get("containerPort", 0)


def is_latest(image: str) -> bool:
    """Reports whether an image reference means the tag `latest`, explicitly or by default."""
    if "@" in image:
        return False
    return image.endswith(":latest") or ":" not in image.rpartition("/")[2]


def check(spec: Mapping[str, Any], path: str, *, claims: Collection[str] = ()) -> list[FieldProblem]:
    """The problems of a pod spec; `claims` are names of volumes that its controller adds to each pod."""
    found, volumes = _volumes(spec.get("volumes") or [], f"{path}.volumes")
    volumes.update(claims)
    if spec.get("containers") == []:
        found.append(required(f"{path}.containers"))
    seen: set[str] = set()
    for key in _CONTAINER_LISTS:
        for place, container in enumerate(spec.get(key) or []):
            found += _container(container, f"{path}.{key}[{place}]", seen, volumes)
    found += labels(spec.get("nodeSelector"), f"{path}.nodeSelector")
    for place, toleration in enumerate(spec.get("tolerations") or []):
        found += _toleration(toleration, f"{path}.tolerations[{place}]")
    for place, constraint in enumerate(spec.get("topologySpreadConstraints") or []):
        found += _spread(constraint, f"{path}.topologySpreadConstraints[{place}]")
    for key, rule in (("serviceAccountName", dns_subdomain), ("hostname", dns_label), ("subdomain", dns_label)):
        if spec.get(key):
            found += every(f"{path}.{key}", spec[key], rule(spec[key]))
    seconds = spec.get("activeDeadlineSeconds")
    if seconds is not None and not 1 <= seconds < 1 << 31:
        found.append(invalid(f"{path}.activeDeadlineSeconds", seconds, "must be between 1 and 2147483647, inclusive"))
    return found + not_negative(spec, path, "terminationGracePeriodSeconds")


def _volumes(volumes: list[dict[str, Any]], path: str) -> tuple[list[FieldProblem], set[str]]:
    found: list[FieldProblem] = []
    names: set[str] = set()
    for place, volume in enumerate(volumes):
        name, where = volume.get("name", ""), f"{path}[{place}]"
        if not name:
            found.append(required(f"{where}.name"))
        else:
            found += every(f"{where}.name", name, dns_label(name))
        if name in names:
            found.append(duplicate(f"{where}.name", name))
        names.add(name)
        sources = [key for key in volume if key != "name"]
        found += [forbidden(f"{where}.{key}", "may not specify more than 1 volume type") for key in sources[1:]]
    return found, names


def _container(container: dict[str, Any], path: str, seen: set[str], volumes: set[str]) -> list[FieldProblem]:
    name = container.get("name", "")
    found = [required(f"{path}.name")] if not name else every(f"{path}.name", name, dns_label(name))
    if name and name in seen:
        found.append(duplicate(f"{path}.name", name))
    seen.add(name)
    image = container.get("image", "")
    if not image:
        found.append(required(f"{path}.image"))
    elif image != image.strip():
        found.append(invalid(f"{path}.image", image, "must not have leading or trailing whitespace"))
    found += _ports(container.get("ports") or [], f"{path}.ports")
    found += _environment(container, path)
    found += _mounts(container, path, volumes)
    found += requirements(container.get("resources") or {}, f"{path}.resources")
    for probe in ("livenessProbe", "readinessProbe", "startupProbe"):
        if probe in container:
            found += _probe(container[probe], f"{path}.{probe}", success_is_one=probe != "readinessProbe")
    for hook, handler in (container.get("lifecycle") or {}).items():
        if isinstance(handler, dict):
            found += _handler(handler, f"{path}.lifecycle.{hook}", (*_ACTIONS[:3], "sleep"))
    return found


def _ports(ports: list[dict[str, Any]], path: str) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    names: set[str] = set()
    for place, port in enumerate(ports):
        where, name = f"{path}[{place}]", port.get("name", "")
        if name:
            found += every(f"{where}.name", name, port_name(name))
            if name in names:
                found.append(duplicate(f"{where}.name", name))
            names.add(name)
        number = port.get("containerPort") or 0
        if number == 0:
            found.append(required(f"{where}.containerPort"))
        else:
            found += every(f"{where}.containerPort", number, port_number(number))
        if port.get("hostPort"):
            found += every(f"{where}.hostPort", port["hostPort"], port_number(port["hostPort"]))
    return found


def _environment(container: dict[str, Any], path: str) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    for place, variable in enumerate(container.get("env") or []):
        where, name = f"{path}.env[{place}]", variable.get("name", "")
        found += [required(f"{where}.name")] if not name else every(f"{where}.name", name, environment_name(name))
        source = variable.get("valueFrom")
        if source is None:
            continue
        given = [key for key in _SOURCES if key in source]
        if not given:
            sentence = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
            found.append(invalid(f"{where}.valueFrom", "", sentence))
        elif len(given) > 1:
            found.append(invalid(f"{where}.valueFrom", "", "may not have more than one field specified at a time"))
        if given and variable.get("value"):
            found.append(invalid(f"{where}.valueFrom", "", "may not be specified when `value` is not empty"))
    for place, source in enumerate(container.get("envFrom") or []):
        if "configMapRef" not in source and "secretRef" not in source:
            found.append(invalid(f"{path}.envFrom[{place}]", "", "must specify one of: `configMapRef` or `secretRef`"))
    return found


def _mounts(container: dict[str, Any], path: str, volumes: set[str]) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    points: set[str] = set()
    for place, mount in enumerate(container.get("volumeMounts") or []):
        where, point = f"{path}.volumeMounts[{place}]", mount.get("mountPath", "")
        if not mount.get("name"):
            found.append(required(f"{where}.name"))
        elif mount["name"] not in volumes:
            found.append(not_found(f"{where}.name", mount["name"]))
        if not point:
            found.append(required(f"{where}.mountPath"))
        elif point in points:
            found.append(invalid(f"{where}.mountPath", point, "must be unique"))
        points.add(point)
        if mount.get("subPath") and mount.get("subPathExpr"):
            sentence = "subPathExpr and subPath are mutually exclusive"
            found.append(invalid(f"{where}.subPathExpr", mount["subPathExpr"], sentence))
    return found


def _probe(probe: dict[str, Any], path: str, *, success_is_one: bool) -> list[FieldProblem]:
    found = _handler(probe, path, _ACTIONS)
    fields = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
    found += not_negative(probe, path, *fields)
    if success_is_one and probe.get("successThreshold", 1) != 1:
        found.append(invalid(f"{path}.successThreshold", probe["successThreshold"], "must be 1"))
    return found


def _handler(handler: dict[str, Any], path: str, allowed: tuple[str, ...]) -> list[FieldProblem]:
    given = [key for key in allowed if key in handler]
    if not given:
        return [required(path, "must specify a handler type")]
    found = [forbidden(f"{path}.{key}", "may not specify more than 1 handler type") for key in given[1:]]
    action, where = handler[given[0]], f"{path}.{given[0]}"
    if given[0] == "exec" and not action.get("command"):
        found.append(required(f"{where}.command"))
    if given[0] in ("httpGet", "tcpSocket"):
        port = action.get("port")
        detail = port_number(port) if isinstance(port, int) else port_name(port or "")
        found += every(f"{where}.port", port, detail)
    return found


def _toleration(toleration: dict[str, Any], path: str) -> list[FieldProblem]:
    found: list[FieldProblem] = []
    operator = toleration.get("operator") or "Equal"
    if not toleration.get("key") and operator != "Exists":
        sentence = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        found.append(invalid(f"{path}.operator", operator, sentence))
    if operator == "Exists" and toleration.get("value"):
        found.append(
            invalid(f"{path}.operator", toleration["value"], "value must be empty when `operator` is 'Exists'")
        )
    if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
        sentence = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(invalid(f"{path}.effect", toleration.get("effect", ""), sentence))
    return found


def _spread(constraint: dict[str, Any], path: str) -> list[FieldProblem]:
    found = positive(constraint, path, "maxSkew")
    if not constraint.get("topologyKey"):
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    return found + label_selector(constraint.get("labelSelector"), f"{path}.labelSelector")
