"""Authorization: RBAC of each logical cluster, the reviews that explain it, and the guards against escalation.

`RbacAuthorizer(backend)` decides (`authorize`) and follows writes (`changed`); `denied` makes the error of a refused
request. `impersonated` returns the user that a request acts as. `check_rbac_write` prevents grants of permissions that
the writer does not hold, `RoleAggregator` writes the rules of aggregated roles, `REVIEWS` answers the kinds of
authorization.k8s.io.
"""

from __future__ import annotations

from hortus.apiserver.authz.attributes import Attributes, AuthorizationDecision, Authorizer
from hortus.apiserver.authz.impersonation import impersonated
from hortus.apiserver.authz.rbac import MASTERS, RbacAuthorizer
from hortus.apiserver.authz.rules import denied

__all__ = [
    "MASTERS",
    "Attributes",
    "AuthorizationDecision",
    "Authorizer",
    "RbacAuthorizer",
    "denied",
    "impersonated",
]
