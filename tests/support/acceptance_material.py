"""What the surroundings of an Envoy would bring: secrets under any name, certificate files, a Wasm module.

Everything is valid and nothing is anybody's: one root, one leaf, one revocation list, and a module that does nothing.
A name that speaks of a CA gets the root, every other one the leaf.
"""

import base64
import datetime
import functools

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from mizzen import observe, protos
from mizzen.agent.bootstrap.document import STAT_NAMESPACE_MODULE
from mizzen.agent.identity import sds

WASM = base64.b64decode(STAT_NAMESPACE_MODULE)
_NAME = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "acceptance")])
_PEM = serialization.Encoding.PEM


@functools.cache
def _root() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    return key, _sign(key, key.public_key(), authority=True)


def _sign(key: ec.EllipticCurvePrivateKey, public_key, *, authority: bool) -> x509.Certificate:
    now = datetime.datetime.now(datetime.UTC)
    names = [x509.UniformResourceIdentifier("spiffe://cluster.local/ns/any/sa/any"), x509.DNSName("*.example.com")]
    return (
        x509.CertificateBuilder()
        .subject_name(_NAME)
        .issuer_name(_NAME)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )


@functools.cache
def root_pem() -> bytes:
    """The root."""
    return _root()[1].public_bytes(_PEM)


@functools.cache
def leaf() -> tuple[bytes, bytes]:
    """A chain and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    chain = _sign(_root()[0], key.public_key(), authority=False).public_bytes(_PEM)
    return chain, key.private_bytes(_PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())


@functools.cache
def revocations_pem() -> bytes:
    """A list on which nothing is revoked."""
    now = datetime.datetime.now(datetime.UTC)
    builder = x509.CertificateRevocationListBuilder().issuer_name(_NAME)
    builder = builder.last_update(now).next_update(now + datetime.timedelta(hours=1))
    return builder.sign(_root()[0], hashes.SHA256()).public_bytes(_PEM)


def build_secret(name: str):
    """The secret of that name."""
    if name == "ROOTCA" or name.startswith("file-root:") or name.endswith("-cacert"):
        return sds.build_roots(name, root_pem())
    chain, key = leaf()
    return sds.build_certificate(name, chain, observe.Secret(key))


def file_content(path: str) -> bytes:
    """What stands in the file that configuration names."""
    if path.endswith(".wasm"):
        return WASM
    if "crl" in path:
        return revocations_pem()
    return leaf()[1] if "key" in path else leaf()[0] + root_pem()


class EverySecret(sds.Secrets):
    """The agent's secrets, as if it had all that anybody asks for."""

    def get(self, name: str) -> tuple[str, bytes] | None:
        """The secret, made on demand."""
        if super().get(name) is None:
            self.put(build_secret(name))
        return super().get(name)


def with_local_module(extension):
    """The extension as the agent passes it on: a Wasm module that it would have fetched lies in the message."""
    config = protos.unpack(extension.typed_config)
    if config.DESCRIPTOR.full_name.startswith("envoy.extensions.filters.") and hasattr(config, "config"):
        code = config.config.vm_config.code
        if code.HasField("remote"):
            code.local.inline_bytes = WASM
            extension.typed_config.CopyFrom(protos.pack(config))
    return extension
