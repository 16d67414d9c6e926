"""The operator's choices for agents. Every command that lists flags loads this module, so it loads little."""

from __future__ import annotations

from typing import Final

from hortus.engine.flags import Flag

FLAGS: Final = (Flag("agents", "bool", False, "Serve InstanaAgents and InstanaAgentRemotes. Needs their CRDs."),)
