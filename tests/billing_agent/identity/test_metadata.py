"""Server-owned keys: recognised in every spelling, taken out at any depth."""

from __future__ import annotations

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from billing_agent.errors import RequestRefused
from billing_agent.identity.metadata import (
    DEPTH_LIMIT,
    TENANT_KEY,
    payloads,
    server_owned,
    stamped,
    stripped,
)

SPELLINGS = [
    "x-verified-tenant",
    "X-Verified-Tenant",
    "X-VERIFIED-TENANT",
    "x_verified_tenant",
    "xVerifiedTenant",
    "x.verified.tenant",
    "x verified tenant",
    " x-verified-tenant ",
    "x-verified-tenant:",
    "x\u2010verified\u2011tenant",
    "x-veri\u200bfied-tenant",
    "\ufeffx-verified-tenant",
    "ｘ-ｖｅｒｉｆｉｅｄ-ｔｅｎａｎｔ",
    "x-veri\ufb01ed-tenant",
    "x" + "-" * 100 + "verified-tenant",
]


@pytest.mark.parametrize("key", SPELLINGS)
def test_every_spelling_is_recognised(key):
    assert server_owned(key)


@pytest.mark.parametrize(
    "key", ["", "tenant", "x-tenant", "verified-tenant", "x-verified-tenants", "請求書"]
)
def test_other_keys_are_the_callers(key):
    assert not server_owned(key)


@pytest.mark.case(8)
@pytest.mark.parametrize("key", SPELLINGS)
def test_key_is_taken_out_at_any_depth(key):
    sent = {"a": [{"b": {key: "acme", "kept": 1}}, {key: {}}], key: "acme"}
    assert stripped(sent) == {"a": [{"b": {"kept": 1}}, {}]}


def test_document_is_never_changed():
    sent = {"a": {TENANT_KEY: "acme"}}
    before = copy.deepcopy(sent)
    stripped(sent)
    assert sent == before


@pytest.mark.parametrize("document", [None, 5, "text", [], {}, {"a": [1, {"b": 2}]}])
def test_document_without_such_keys_comes_back_itself(document):
    assert stripped(document) is document


def test_data_parts_are_content():
    data = {TENANT_KEY: "part of an invoice"}
    message = {
        "parts": [{"data": data, "metadata": {TENANT_KEY: "acme"}}, {"data": "text"}],
        "metadata": {TENANT_KEY: "acme", "k": "v"},
    }
    assert stripped(message, payloads(message)) == {
        "parts": [{"data": data, "metadata": {}}, {"data": "text"}],
        "metadata": {"k": "v"},
    }


@pytest.mark.parametrize("parts", [None, "text", {}, [None, "text", {"data": 5}]])
def test_message_without_data_parts_spares_nothing(parts):
    assert payloads({"parts": parts}) == frozenset()


def test_data_key_inside_metadata_spares_nothing():
    message = {"metadata": {"data": {TENANT_KEY: "acme"}}, "parts": []}
    assert stripped(message, payloads(message))["metadata"] == {"data": {}}


def nested(depth):
    document = {}
    for _ in range(depth - 1):
        document = {"a": document}
    return document


def test_deep_nesting_is_refused():
    assert stripped(nested(DEPTH_LIMIT))
    with pytest.raises(RequestRefused, match="deep"):
        stripped(nested(DEPTH_LIMIT + 1))


@pytest.mark.parametrize("metadata", [None, {}])
def test_absent_metadata_is_made(metadata):
    assert stamped(metadata, "acme") == {TENANT_KEY: "acme"}


@pytest.mark.parametrize("metadata", [[], "text", 5, True])
def test_metadata_that_is_no_object_is_refused(metadata):
    with pytest.raises(RequestRefused, match="metadata"):
        stamped(metadata, "acme")


keys = st.sampled_from(SPELLINGS) | st.text(max_size=20)
trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=4)
    ),
    max_leaves=20,
)


def keys_in(node):
    if isinstance(node, dict):
        yield from node
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from keys_in(child)


@given(tree=trees)
def test_no_tree_keeps_a_server_owned_key(tree):
    assert not any(map(server_owned, keys_in(stripped(tree))))


@given(tree=trees)
def test_stripping_twice_is_stripping_once(tree):
    once = stripped(tree)
    assert stripped(once) is once
