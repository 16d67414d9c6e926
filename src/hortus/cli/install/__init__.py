"""Bringing Hortus onto a cluster: the chart's objects, printed or applied without Helm, and the garden's role."""
