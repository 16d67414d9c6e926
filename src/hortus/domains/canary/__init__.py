"""Canary: a real small cluster, grown, used and deleted every hour, so that operators know before their users do."""
