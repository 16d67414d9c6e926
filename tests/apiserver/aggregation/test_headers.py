"""The headers that name a user to a server behind, for names that a certificate or a token of somebody else gives."""

from __future__ import annotations

import pytest

from hortus.apiserver.aggregation.headers import identity
from hortus.apiserver.aggregation.servers import Unreachable
from hortus.apiserver.authn.identity import UserInfo

FORGED = "x\r\nX-Remote-Group: system:masters"


@pytest.mark.parametrize(
    ("user", "name"),
    [
        (UserInfo(FORGED), "X-Remote-User"),
        (UserInfo("x", uid="1\n2"), "X-Remote-Uid"),
        (UserInfo("x", groups=("devs", "a\0b")), "X-Remote-Group"),
        (UserInfo("x", extra={"example.org/scopes": ["some", "a\x7f"]}), "X-Remote-Extra-example.org%2Fscopes"),
    ],
)
def test_a_user_whose_name_no_header_can_have_is_named_to_nobody(user: UserInfo, name: str) -> None:
    with pytest.raises(Unreachable) as refused:
        identity(user)
    assert str(refused.value) == f'net/http: invalid header field value for "{name}"'


def test_spaces_tabs_and_letters_of_any_language_are_kept() -> None:
    assert identity(UserInfo("Zoë\tof the garden")).getall("X-Remote-User") == ["Zoë\tof the garden"]
