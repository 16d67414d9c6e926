"""The kinds of cluster stacks, a file each; `hortus.domains.stacks.types` exports them."""
