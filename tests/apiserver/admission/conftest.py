from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.apiserver.admission.scripted import Webhook, scripted_webhook


@pytest.fixture
async def hook(tmp_path: Path) -> AsyncIterator[Webhook]:
    async with scripted_webhook(tmp_path) as found:
        yield found
