"""The operator of agents by itself: its objects, as a Helm chart, as plain manifests and as an OLM bundle.

`operator` has the objects; the others give them their forms. `make manifests` writes all of it to charts/instana-agent
and deploy/agents, and `make check` reports what is out of date. A controller loads none of it.
"""
