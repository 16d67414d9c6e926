"""The kinds of the API group operator.kyma-project.io, a file each; `hortus.domains.modules.types` exports them."""
