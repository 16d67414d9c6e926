"""The errors of a chart."""

from __future__ import annotations


class ChartError(Exception):
    """A chart that cannot be loaded or rendered; the message names the chart, the file and what to do."""


class RenderTimeout(ChartError):
    """A rendering took longer than it may, or its worker was ended."""
