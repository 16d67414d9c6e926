"""Validation of InstanaAgents and InstanaAgentRemotes, beyond what their CRDs refuse.

`rules` is the one table, each rule in CEL and in Python. From it come the CRDs with rules (`strict`), the
ValidatingAdmissionPolicies (`policies`) and the answers of the webhook (`reviews`). All of it is additional: without it
an object is accepted as by the Go operator.
"""
