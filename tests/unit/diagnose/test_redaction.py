"""Private keys never reach the output."""

import json

from mizzen.diagnose import redaction

KEY = "-----BEGIN PRIVATE KEY-----"


def test_keys_are_redacted_wherever_they_stand() -> None:
    certificate = {"certificateChain": {"inlineString": "chain"}, "privateKey": {"inlineBytes": KEY}}
    values = {
        "secret": {"name": "s", "tlsCertificate": {**certificate, "password": {"inlineString": KEY}}},
        "tickets": {"name": "t", "sessionTicketKeys": {"keys": [{"inlineBytes": KEY}]}},
        "generic": {"name": "g", "genericSecret": {"secret": {"inlineString": KEY}}},
        "listener": {"filterChains": [{"transportSocket": {"tlsCertificates": [certificate]}}]},
    }

    redacted = redaction.redact(values)

    assert KEY not in json.dumps(redacted)
    assert json.dumps(redacted).count("[redacted]") == 5
    assert redacted["secret"]["tlsCertificate"]["certificateChain"] == {"inlineString": "chain"}


def test_nothing_else_changes() -> None:
    value = {"name": "x", "keys": ["a"], "password": "a header's name", "n": 1.5, "none": None}

    assert redaction.redact(value) == value
