"""A simulated Flux: source-controller for OCIRepositories, and helm-controller for HelmReleases that name them.

    flux = add_flux(manager, client=client)     # once `definitions.install(client)` has made the kinds
    flux.failing.add("cni")                     # a fault: charts of this name cannot be installed

Charts are fetched over HTTPS with the credentials that the objects name, rendered with their values and applied into
the cluster of their kubeconfig, with helm's records there; conditions and history are those that Flux writes. Hooks and
tests of charts do not run, nothing is remediated or rolled back, and a source is an OCIRepository with a digest or tag.
"""
