"""The watcher agent: a small program on a managed cluster that reports changes of Kymas to the control plane.

Its API server calls it as a validating webhook. It allows every request, and reports those that change what the control
plane acts on, by a POST with a client certificate. An event is on disk before the API server has its answer, and stays
there until the control plane has accepted it. The program is `hortus-watcher-agent`; its settings are environment
variables, those of Kyma's runtime-watcher and a few more (`settings`).

It imports no controller, cache or renderer: it runs in every cluster, next to the users' own workloads.
"""
