"""Publishing cluster stacks: from a folder with csctl.yaml to a release in a folder or an OCI registry.

`building` makes the files of a release, the same bytes for the same folder and versions; `versions` chooses the
versions by mode; `pushing` writes a release to a registry; `verifying` checks one that is there.
"""
