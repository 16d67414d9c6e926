"""Authorization: RBAC of each logical cluster, the reviews that explain it, and the guards against escalation.

`RbacAuthorizer(backend)` decides (`authorize`), and must hear of writes (`changed`); `denied` makes the error of a
refused request.
"""

from __future__ import annotations

from hortus.apiserver.authz.attributes import Attributes, Authorizer, Decision
from hortus.apiserver.authz.messages import denied
from hortus.apiserver.authz.rbac import MASTERS, RbacAuthorizer

__all__ = ["MASTERS", "Attributes", "Authorizer", "Decision", "RbacAuthorizer", "denied"]
