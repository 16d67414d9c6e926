"""Admission of Clusters, ClusterStacks, ClusterStackReleases and ClusterAddons by a validating webhook.

`rules` decides, `lookups` reads what the decisions depend on, `reviews` speaks the protocol. docs/stacks/admission.md
has the rules for users, and the configuration to apply.
"""
