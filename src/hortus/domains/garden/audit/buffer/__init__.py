"""The buffer of audit events: a receiver of audit webhooks, a spool on the disk, and sinks."""
