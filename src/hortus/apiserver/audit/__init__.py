"""The audit log of audit.k8s.io/v1: one JSON line per stage of a request.

A policy file selects the requests that are recorded and the level of detail. Without the setting `audit` it is off and
costs nothing. At every level, values of Secrets and the bodies of subresources that hand out tokens or kubeconfigs are
omitted; credentials in other kinds are not detected. Source: "Auditing"
(kubernetes.io/docs/tasks/debug/debug-cluster/audit).
"""

from hortus.apiserver.audit.log import AuditLog
from hortus.apiserver.audit.policy import AuditPolicy, Level, PolicyError, Question, read_policy
from hortus.apiserver.audit.recording import Auditor

__all__ = ["AuditLog", "AuditPolicy", "Auditor", "Level", "PolicyError", "Question", "read_policy"]
