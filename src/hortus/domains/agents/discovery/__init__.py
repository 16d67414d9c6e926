"""Facts of the cluster that agents are built from, read from caches: OpenShift, etcd, Secrets, namespaces."""
