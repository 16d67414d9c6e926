"""Rules of Shoots by version of Kubernetes and Gardener."""
