"""The rules of Gardener by version, for what is sent to a garden and for the garden that is simulated. Pure.

- `livemigration`: the states, rules and steps of moving a control plane between seeds.
- `machineimages`: machine images of OpenStack as CloudProfiles describe them.
- `shoots`: the rules of creating and changing a Shoot.

Each rule is compared with Gardener's own code in tests (`make oracles`).
"""
