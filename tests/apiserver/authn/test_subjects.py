"""Names of users and groups in certificates: any text, also longer than X.520 has room for."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from hortus.apiserver.authn.certificates import client_certificate, new_key, root_authority
from hortus.apiserver.authn.subjects import NAME_LIMIT, name_of, subject_of

KEY = new_key()
AUTHORITY = root_authority(KEY, "authority", start=0, days=1)
LONG = "gardener.cloud:admin:system:serviceaccount:kcp-system:infrastructure-manager"
texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=300)


@settings(max_examples=50, deadline=None)
@given(user=texts, groups=st.lists(texts, max_size=4))
def test_a_certificate_names_whom_it_was_made_for(user: str, groups: list[str]) -> None:
    certificate = client_certificate(AUTHORITY, KEY.public_key(), name_of(user, groups), start=0, end=60)
    assert subject_of(certificate) == ([user], groups)
    request = x509.CertificateSigningRequestBuilder().subject_name(name_of(user, groups)).sign(KEY, hashes.SHA256())
    assert subject_of(request) == ([user], groups)


def test_names_of_service_accounts_fit() -> None:
    assert len(LONG) > 64
    certificate = client_certificate(AUTHORITY, KEY.public_key(), name_of(LONG, ["g" * 200]), start=0, end=60)
    assert subject_of(certificate) == ([LONG], ["g" * 200])


def test_parts_that_do_not_matter_are_passed_over() -> None:
    unit = x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, "unit")
    name = x509.Name([unit, *name_of("jane", ["dev"])])
    assert subject_of(client_certificate(AUTHORITY, KEY.public_key(), name, start=0, end=60)) == (["jane"], ["dev"])


@pytest.mark.parametrize("user", ["", "x" * (NAME_LIMIT + 1)])
def test_a_name_without_or_with_endless_text_is_refused(user: str) -> None:
    with pytest.raises(ValueError, match=f"1 to {NAME_LIMIT} bytes"):
        name_of(user)
