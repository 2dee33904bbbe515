"""Messages that answer debug requests hold no secrets."""

from mizzen import protos
from mizzen.control.debug.redaction import redact

tls = protos.package("envoy.extensions.transport_sockets.tls.v3")
core = protos.package("envoy.config.core.v3")
KEY = b"KNOWN-KEY-BYTES"


def test_keys_are_replaced_also_inside_other_messages() -> None:
    secret = tls.Secret(name="a", tls_certificate={"private_key": {"inline_bytes": KEY}})
    outer = core.TypedExtensionConfig(name="x", typed_config=protos.pack(secret))
    assert KEY not in protos.encode(redact(outer))
    assert protos.unpack(outer.typed_config).tls_certificate.private_key.inline_string == "[redacted]"


def test_logins_of_registries_are_replaced() -> None:
    plugin = protos.message_class("envoy.extensions.filters.http.wasm.v3.Wasm")()
    variables = plugin.config.vm_config.environment_variables.key_values
    variables["ISTIO_META_WASM_IMAGE_PULL_SECRET"] = KEY.decode()
    variables["OWN"] = "1"
    outer = core.TypedExtensionConfig(name="x", typed_config=protos.pack(plugin))
    assert KEY not in protos.encode(redact(outer))
    found = protos.unpack(outer.typed_config).config.vm_config.environment_variables.key_values
    assert dict(found) == {"ISTIO_META_WASM_IMAGE_PULL_SECRET": "[redacted]", "OWN": "1"}


def test_what_holds_no_secret_stays_as_it_is() -> None:
    chain = tls.Secret(name="a", tls_certificate={"certificate_chain": {"inline_bytes": b"chain"}})
    before = protos.encode(chain)
    assert protos.encode(redact(chain)) == before
