"""docs/clusters/configuration.md: its files can be used, and what it shows as refused is refused in these words."""

from __future__ import annotations

import re

import orjson
import pytest
from tests.docs.consoles import ROOT

from hortus.domains.clusters.configuration import (
    ConfigurationError,
    parse_configuration,
    parse_tenants,
    parse_windows,
)

PAGE = (ROOT / "docs/clusters/configuration.md").read_text()
CONVERTER, TENANTS, WINDOWS = (found.encode() for found in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
REMARK, REFUSED = re.findall(r"```text\n(.*?)\n```", PAGE, re.DOTALL)


def test_its_files_can_be_used() -> None:
    assert parse_configuration(CONVERTER).remarks == ()
    assert parse_tenants(TENANTS).by_provider
    assert parse_windows(WINDOWS)


def test_what_it_shows_as_refused_is_refused_so() -> None:
    document = orjson.loads(CONVERTER)
    converter = document["converter"]
    converter["kubernetes"]["defaultVersion"] = "latest"
    converter["provider"]["aws"]["enableIMDSv2"] = "true"
    del converter["dns"]["secretName"], converter["gardener"]["projectName"]
    with pytest.raises(ConfigurationError) as raised:
        parse_configuration(orjson.dumps(document), source="converter.json")
    assert sorted(str(raised.value).splitlines()) == sorted(REFUSED.splitlines())


def test_what_it_shows_as_a_remark_is_remarked_so() -> None:
    document = orjson.loads(CONVERTER)
    document["converter"]["aws"] = {"enableIMDSv2": True}
    assert parse_configuration(orjson.dumps(document)).remarks == (REMARK,)
