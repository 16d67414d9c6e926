"""Facts of a cluster that agents are built from: OpenShift, etcd, Secrets, namespaces."""
