"""Dynamic admission: webhooks and policies that the objects of a logical cluster configure.

Each write asks `Admission.begin` for the webhooks and policies of its cluster; for a cluster without any that is one
look into a dictionary. The objects are compiled on first use and dropped by the write that changes them, so an
acknowledged configuration is in force. Order as in kube-apiserver: mutating webhooks, the kind's own rules, then
validating policies and validating webhooks. Sources: "Dynamic Admission Control", KEP-3488 (policies), KEP-3716 (match
conditions).
"""

from hortus.apiserver.admission.authorship import AuthorGuard
from hortus.apiserver.admission.calling import ServiceResolver, WebhookClient
from hortus.apiserver.admission.reviewing import DynamicAdmission

__all__ = ["AuthorGuard", "DynamicAdmission", "ServiceResolver", "WebhookClient"]
