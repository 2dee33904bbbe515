"""Opaque configurations: types of Envoy's that are not known here, carried as a TypedStruct.

In: a patch's value as written. Out: the same with every `Any` of such a type as `udpa.type.v1.TypedStruct`, which Envoy
reads as the type that it names. These are Envoy's contrib extensions and filters of Istio's; any other unknown type is
a mistake and makes the patch unreadable.
"""

import functools
from typing import Any

from mizzen import protos
from mizzen.errors import DecodeError

TYPED_STRUCTS = ("udpa.type.v1.TypedStruct", "xds.type.v3.TypedStruct")

_NETWORK = "envoy.extensions.filters.network."
_HTTP = "envoy.extensions.filters.http."
_CONTRIB = frozenset(
    (
        _NETWORK + "client_ssl_auth.v3.ClientSSLAuth",
        _NETWORK + "golang.v3alpha.Config",
        _NETWORK + "kafka_broker.v3.KafkaBroker",
        _NETWORK + "kafka_mesh.v3alpha.KafkaMesh",
        _NETWORK + "mysql_proxy.v3.MySQLProxy",
        _NETWORK + "postgres_proxy.v3alpha.PostgresProxy",
        _NETWORK + "rocketmq_proxy.v3.RocketmqProxy",
        _NETWORK + "sip_proxy.v3alpha.SipProxy",
        _HTTP + "dynamo.v3.Dynamo",
        _HTTP + "golang.v3alpha.Config",
        _HTTP + "golang.v3alpha.ConfigsPerRoute",
        _HTTP + "squash.v3.Squash",
        _HTTP + "sxg.v3alpha.SXG",
        "envoy.extensions.private_key_providers.cryptomb.v3alpha.CryptoMbPrivateKeyMethodConfig",
        "envoy.extensions.private_key_providers.qat.v3alpha.QatPrivateKeyMethodConfig",
    )
)
_OF_ISTIO = frozenset(("envoy.tcp.metadataexchange.config.MetadataExchange", "io.istio.http.peer_metadata.Config"))


def is_contrib(name: str) -> bool:
    """Whether only Envoys built with the contrib extensions, Istio's among them, have the type."""
    return name in _CONTRIB


@functools.lru_cache(maxsize=1024)
def known_class(name: str) -> Any | None:
    """The class of a message type; None for one that is not known here."""
    try:
        return protos.message_class(name)
    except DecodeError:
        return None


def as_typed_structs(value: Any) -> Any:
    """The value with opaque types wrapped, wherever they stand."""
    if isinstance(value, list):
        return [as_typed_structs(each) for each in value]
    if not isinstance(value, dict):
        return value
    inside = {name: as_typed_structs(each) for name, each in value.items()}
    url = inside.get("@type")
    if not isinstance(url, str) or url.rpartition("/")[2] not in _CONTRIB | _OF_ISTIO:
        return inside
    del inside["@type"]
    return {"@type": protos.TYPE_PREFIX + TYPED_STRUCTS[0], "typeUrl": url, "value": inside}
