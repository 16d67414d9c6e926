"""Who did what when: the audit log of audit.k8s.io/v1, one JSON line per stage of a request.

A policy file says which requests are recorded and how much of them. Off unless `Settings.audit` is given, and then free
of cost. Whatever the level, values of Secrets and the bodies of subresources that hand out tokens or kubeconfigs are
left out; credentials kept in other kinds are not looked for. Source: "Auditing"
(kubernetes.io/docs/tasks/debug/debug-cluster/audit).
"""

from hortus.apiserver.audit.log import AuditLog
from hortus.apiserver.audit.policy import Level, Policy, PolicyError, Question, read_policy
from hortus.apiserver.audit.recording import Auditor, Entry

__all__ = ["AuditLog", "Auditor", "Entry", "Level", "Policy", "PolicyError", "Question", "read_policy"]
