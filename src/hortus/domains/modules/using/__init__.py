"""The commands for users of modules: pure tables and edits, and the session that reads and writes one cluster.

They work on the Kyma in the cluster itself (`kyma-system/default`), as the CLI of Kyma does, so they need no access to
the control plane. Names of columns, keys and states are those of kyma-project/cli.
"""
