"""Dynamic admission: webhooks and policies that a logical cluster's own objects set up.

Each write asks `Admission.begin` whether anybody in its cluster wants to judge it; a cluster without configurations is
one look into a dictionary. What the objects say is compiled when first needed and dropped by the write that changes
it, so a configuration that has been acknowledged is in force. Order as in kube-apiserver: mutating webhooks, the
kind's own rules, then validating policies and validating webhooks. Sources: "Dynamic Admission Control", KEP-3488
(policies), KEP-3716 (match conditions).
"""

from hortus.apiserver.admission.authorship import AuthorGuard
from hortus.apiserver.admission.calling import ServiceResolver, WebhookClient
from hortus.apiserver.admission.reviewing import DynamicAdmission

__all__ = ["AuthorGuard", "DynamicAdmission", "ServiceResolver", "WebhookClient"]
