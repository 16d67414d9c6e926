"""Events from managed clusters in place of polling: the agent there, its certificates, and the listener here."""
