"""The seed of the simulated garden: the part of gardenlet and gardener-resource-manager that extensions work with.

One logical cluster stands for the seeds of all regions. `definitions` installs its kinds, `controlplanes` keeps a
namespace for each Shoot with the objects that extensions read, `resources` applies ManagedResources.
"""
