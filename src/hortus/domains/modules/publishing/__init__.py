"""Publishing modules: from a module-config to a ModuleTemplate and a component version in an OCI registry.

`layout` makes the component version of a constructor: descriptor, layers, config and manifest, the same bytes for the
same module. `pushing` writes it to a registry, `transport` to a folder in the common transport format.
"""
