"""The frame that all topics share: the life of an Extension, its ManagedResources, health, admission, registration.

`topic` has the part that each topic writes; `controller` carries out operations as `lifecycle` decides; `managed`,
`health`, `references` and `progress` are the parts of it; `admission` checks Shoots in the garden; `registration` makes
the objects by which Gardener knows the extension. docs/garden/README.md adds a topic.
"""
