"""The program `hortus-node-agent`."""

from __future__ import annotations

import sys


def main() -> None:
    # structlog loads this library for colours where it is there; the logs of an agent are JSON, and it costs a tenth of
    # the agent's memory.
    sys.modules.setdefault("rich", None)  # type: ignore[arg-type]
    from hortus.nodeagent.program import start

    start()


if __name__ == "__main__":
    main()
