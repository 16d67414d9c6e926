"""Shared by the stores' tests."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("tests.apiserver.store.contract", "tests.apiserver.store.model")
