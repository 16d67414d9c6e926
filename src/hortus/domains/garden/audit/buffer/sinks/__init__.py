"""Destinations of audit events, one file each, behind the seam `AuditSink`."""

from hortus.domains.garden.audit.buffer.sinks.sink import AuditSink, SinkBatch, SinkError

__all__ = ["AuditSink", "SinkBatch", "SinkError"]
