"""A simulated Cluster API: Clusters with a topology become clusters that answer, and runtime hooks are called.

It serves what a program around Cluster API sees: both versions of Cluster and ClusterClass, control plane and
infrastructure objects, `<cluster>-kubeconfig` Secrets of workload clusters that are logical clusters of the same
server with the nodes of their topology, ExtensionConfigs and their hooks. No Machine object is made, patches and
variables of a ClusterClass have no effect, and no version is converted: an object reads in every version as it was
written.
"""
