"""Runtime hooks: Cluster API asks here before and after it changes a cluster."""
