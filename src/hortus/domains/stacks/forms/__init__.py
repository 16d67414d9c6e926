"""Forms for Clusters, made of the variables of a ClusterClass: a manifest with comments, and a page."""
