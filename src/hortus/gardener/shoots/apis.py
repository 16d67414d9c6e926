"""The APIs of Kubernetes by version, and the problems of switching them in `runtimeConfig`.

Source: gardener/gardener, pkg/utils/validation/apigroups, the same in releases 1.148 to 1.150.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from hortus.gardener.shoots.facts import RuleFacts, Span
from hortus.schema import FieldError
from hortus.schema.problems import forbidden, invalid
from hortus.schema.quoting import quote


class Api(NamedTuple):
    """The versions that have an API, and whether Gardener needs it."""

    span: Span
    needed: bool = False
    needed_workerless: bool = False


def api_problems(switches: Mapping[str, bool], path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of APIs that a version does not have, and of those that must stay on."""
    for name, enabled in switches.items():
        at, parts = f"{path}[{name}]", name.split("/")
        is_resource = len(parts) == 3 or (len(parts) == 2 and parts[0] == "v1")
        known = RESOURCES if is_resource else GROUPS
        if len(parts) > 3:
            yield invalid(at, name, f"invalid API Group format {quote(name)}")
        elif name not in known:
            kind = "API group version resource" if is_resource else "API group version"
            yield invalid(at, name, f"unknown {kind} {quote(name)}")
        elif facts.normal is None:
            yield invalid(at, name, facts.unreadable)
        elif not known[name].span.covers(facts.normal):
            text = f"api {quote(name)} is not supported in Kubernetes version {facts.version}"
            yield forbidden(at, f"{text}, only supported in {known[name].span}")
        elif not enabled:
            yield from _disabled(name, at, facts)


def _disabled(name: str, path: str, facts: RuleFacts) -> Iterator[FieldError]:
    """Problems of an API that is switched off: it is needed, or its group is, or one of its resources."""
    is_resource = name in RESOURCES
    if _is_needed(RESOURCES[name] if is_resource else GROUPS[name], facts):
        yield _needed(name, path, facts)
    elif is_resource:
        group = name.rpartition("/")[0]
        if _is_needed(GROUPS[group], facts):
            yield _needed(group, path, facts)
    else:
        for resource, api in RESOURCES.items():
            if resource.startswith(f"{name}/") and _is_needed(api, facts):
                yield _needed(resource, path, facts)


def _is_needed(api: Api, facts: RuleFacts) -> bool:
    return api.needed_workerless if facts.workerless else api.needed


def _needed(name: str, path: str, facts: RuleFacts) -> FieldError:
    return forbidden(path, f"api {quote(name)} cannot be disabled{' for workerless clusters' * facts.workerless}")


_ENTRY = re.compile(r"([^(!]+)(?:\(([^)]*)\))?(!*)")


def _entry(text: str) -> tuple[str, Api]:
    found = _ENTRY.fullmatch(text)
    assert found is not None, text
    return found[1], Api(Span.of(found[2] or "-"), needed=bool(found[3]), needed_workerless=found[3] == "!!")


# A group version and its resources, each with `(added-removed)` where a Kubernetes version added or removed it, with
# `!` where Gardener needs it, and with `!!` where it also needs it without workers.
_TABLE = """
admissionregistration.k8s.io/v1!: mutatingadmissionpolicies(1.36-) mutatingadmissionpolicybindings(1.36-)
  mutatingwebhookconfigurations! validatingadmissionpolicies(1.30-) validatingadmissionpolicybindings(1.30-)
  validatingwebhookconfigurations!
admissionregistration.k8s.io/v1alpha1: mutatingadmissionpolicies(1.32-) mutatingadmissionpolicybindings(1.32-)
  validatingadmissionpolicies validatingadmissionpolicybindings
admissionregistration.k8s.io/v1beta1: mutatingadmissionpolicies(1.34-) mutatingadmissionpolicybindings(1.34-)
  mutatingwebhookconfigurations validatingadmissionpolicies(1.28-) validatingadmissionpolicybindings(1.28-)
  validatingwebhookconfigurations
apps/v1!: controllerrevisions daemonsets deployments replicasets statefulsets
apps/v1beta1: controllerrevisions deployments statefulsets
apps/v1beta2: controllerrevisions daemonsets deployments replicasets statefulsets
autoscaling/v1: horizontalpodautoscalers
autoscaling/v2: horizontalpodautoscalers!
autoscaling/v2beta1(-1.36): horizontalpodautoscalers(-1.36)
autoscaling/v2beta2(-1.36): horizontalpodautoscalers(-1.36)
batch/v1: cronjobs jobs
batch/v1beta1: cronjobs
certificates.k8s.io/v1: certificatesigningrequests!
certificates.k8s.io/v1alpha1: clustertrustbundles podcertificaterequests(1.34-1.35)
certificates.k8s.io/v1beta1: clustertrustbundles(1.33-) certificatesigningrequests podcertificaterequests(1.35-)
coordination.k8s.io/v1: leases!
coordination.k8s.io/v1alpha1(1.31-1.32): leasecandidates(1.31-1.32)
coordination.k8s.io/v1alpha2(1.32-): leasecandidates(1.32-)
coordination.k8s.io/v1beta1: leasecandidates(1.33-) leases
discovery.k8s.io/v1: endpointslices!!
discovery.k8s.io/v1beta1: endpointslices
events.k8s.io/v1: events!!
events.k8s.io/v1beta1: events
extensions/v1beta1: daemonsets deployments ingresses networkpolicies replicasets
flowcontrol.apiserver.k8s.io/v1(1.29-): flowschemas(1.29-) prioritylevelconfigurations(1.29-)
flowcontrol.apiserver.k8s.io/v1beta1: flowschemas prioritylevelconfigurations
flowcontrol.apiserver.k8s.io/v1beta2: flowschemas prioritylevelconfigurations
flowcontrol.apiserver.k8s.io/v1beta3: flowschemas prioritylevelconfigurations
internal.apiserver.k8s.io/v1alpha1: storageversions
networking.k8s.io/v1!!: ingressclasses ingresses ipaddresses(1.33-) networkpolicies servicecidrs(1.33-)
networking.k8s.io/v1alpha1(-1.34): ipaddresses(-1.34) servicecidrs(1.29-1.34)
networking.k8s.io/v1beta1: ingressclasses ingresses ipaddresses(-1.31) servicecidrs(-1.31)
node.k8s.io/v1: runtimeclasses!
node.k8s.io/v1alpha1: runtimeclasses
node.k8s.io/v1beta1: runtimeclasses
policy/v1: poddisruptionbudgets!
policy/v1beta1: poddisruptionbudgets
rbac.authorization.k8s.io/v1!!: clusterrolebindings clusterroles rolebindings roles
rbac.authorization.k8s.io/v1alpha1: clusterrolebindings clusterroles rolebindings roles
rbac.authorization.k8s.io/v1beta1: clusterrolebindings clusterroles rolebindings roles
resource.k8s.io/v1(1.34-): deviceclasses(1.34-) resourceclaims(1.34-) resourceclaimtemplates(1.34-)
  resourceslices(1.34-)
resource.k8s.io/v1alpha2(-1.31): podschedulingcontexts(-1.31) resourceclaimparameters(1.30-1.31)
  resourceclaims(-1.31) resourceclaimtemplates(-1.31) resourceclasses(-1.31) resourceclassparameters(1.30-1.31)
  resourceslices(1.30-1.31)
resource.k8s.io/v1alpha3(1.31-): deviceclasses(1.31-1.34) devicetaintrules(1.33-) podschedulingcontexts(1.31-1.32)
  resourceclaims(1.31-1.34) resourceclaimtemplates(1.31-1.34) resourcepoolstatusrequests(1.36-)
  resourceslices(1.31-1.34)
resource.k8s.io/v1beta1(1.32-): deviceclasses(1.32-) resourceclaims(1.32-) resourceclaimtemplates(1.32-)
  resourceslices(1.32-)
resource.k8s.io/v1beta2(1.33-): deviceclasses(1.33-) devicetaintrules(1.36-) resourceclaims(1.33-)
  resourceclaimtemplates(1.33-) resourceslices(1.33-)
scheduling.k8s.io/v1: priorityclasses!
scheduling.k8s.io/v1alpha1(-1.36): priorityclasses(-1.36) workloads(1.35-1.36)
scheduling.k8s.io/v1alpha2(1.36-): podgroups(1.36-) workloads(1.36-)
scheduling.k8s.io/v1beta1: priorityclasses
storage.k8s.io/v1!: csidrivers csinodes csistoragecapacities storageclasses volumeattachments
  volumeattributesclasses(1.34-)
storage.k8s.io/v1alpha1: csistoragecapacities volumeattachments volumeattributesclasses(1.29-)
storage.k8s.io/v1beta1: csidrivers csinodes csistoragecapacities storageclasses volumeattachments
  volumeattributesclasses(1.31-)
storagemigration.k8s.io/v1alpha1(1.30-1.35): storageversionmigrations(1.30-1.35)
storagemigration.k8s.io/v1beta1(1.35-): storageversionmigrations(1.35-)
v1!!: componentstatuses configmaps endpoints events limitranges namespaces nodes persistentvolumeclaims
  persistentvolumes pods podtemplates replicationcontrollers resourcequotas secrets serviceaccounts services
"""


def _read() -> tuple[dict[str, Api], dict[str, Api]]:
    groups: dict[str, Api] = {}
    resources: dict[str, Api] = {}
    group = ""
    for text in _TABLE.split():
        name, api = _entry(text.removesuffix(":"))
        if text.endswith(":"):
            group, groups[name] = name, api
        else:
            resources[f"{group}/{name}"] = api
    return groups, resources


GROUPS, RESOURCES = _read()
"""The APIs by group version, and their resources by group version and name."""
