"""Destinations that requests name in a header, on ports that the Shoots of a gateway share. Pure.

Gardener's route sends a request to the Envoy cluster that the first value of the header names, so the cluster's name is
all that counts. It has one of two forms (gardener, pkg/component/networking/istio/charts/istio/istio-ingress and
pkg/component/kubernetes/apiserverexposure):

- `outbound|443||kube-apiserver.<technical ID>.svc.cluster.local`, also with `1194||vpn-seed-server`;
- `<technical ID>--kube-apiserver-socket`, where the gateway ends TLS.

A destination counts as a Shoot's own when a value has its technical ID before a dot, two dashes or its end. One of
another form is unknown: a later Gardener may route it to the Shoot, so that it is refused.
"""

from __future__ import annotations

from typing import Final

from hortus.kube.objects import Object

_NAME: Final = "[a-z0-9-]+"
KNOWN: Final = rf"outbound\|[0-9]+\|[a-z0-9-]*\|{_NAME}\.{_NAME}\.svc\.cluster\.local|shoot-{_NAME}--{_NAME}"
"""The forms, with any Service and any end, so that those of other Shoots in a later Gardener pass. The list of values
in which Envoy joins several headers has a comma, so it has none of the forms. Envoy takes the expression as long as its
program stays below 100 instructions, unless the gateway allows more.
"""


def own_destination(header: str, technical_id: str) -> Object:
    """The permission for requests whose header names a Shoot, among other values or alone.

    Names of projects and Shoots have no two dashes in a row, so `shoot--a--b--` belongs to `shoot--a--b` alone, and no
    other technical ID contains it. An old technical ID has single dashes, and the name of another Shoot may be like it.
    """
    first = "contains" if "--" in technical_id else "prefix"
    last = "suffix" if "--" in technical_id else "exact"
    forms = ({"contains": f".{technical_id}."}, {first: f"{technical_id}--"}, {last: technical_id})
    return {"or_rules": {"rules": [{"header": {"name": header, "string_match": one}} for one in forms]}}


def unknown_destination(header: str) -> Object:
    """The permission for requests with a header that has no known form; one without the header is routed nowhere."""
    return {"header": {"name": header, "string_match": {"safe_regex": {"regex": KNOWN}}, "invert_match": True}}
