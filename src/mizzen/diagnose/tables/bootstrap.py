"""`proxy-config bootstrap`: who the proxy is and which Envoy it runs.

In: the BootstrapConfigDump section. Out: a table without header of the versions that the node tells of.
"""

from mizzen.diagnose import dump
from mizzen.diagnose.dump import Dump, Json
from mizzen.diagnose.table import Table


def summarize(source: Dump) -> Table:
    """Istio's, the proxy build's and Envoy's version; without the former two where the node does not tell them."""
    node = dump.message(source.section("Bootstrap"), "bootstrap", "node")
    metadata = dump.message(node, "metadata")
    build = str(metadata.get("ISTIO_PROXY_SHA", ""))
    lines = (
        ("Istio Version:", str(metadata.get("ISTIO_VERSION", ""))),
        ("Istio Proxy Version:", build.partition(":")[2]),
        ("Envoy Version:", _envoy_version(dump.message(node, "user_agent_build_version"))),
    )
    return Table(rows=tuple(line for line in lines if line[1]), padding=1)


def _envoy_version(build: Json) -> str:
    """`1.40.0-dev/Clean/RELEASE/BoringSSL`, as far as known; at least the numbers, which may be zeros."""
    version = dump.message(build, "version")
    numbers = (dump.number(version, name) for name in ("major_number", "minor_number", "patch"))
    metadata = dump.message(build, "metadata")
    label = metadata.get("build.label")
    text = ".".join(str(n) for n in numbers) + (f"-{label}" if label else "")
    parts = (metadata.get(key) for key in ("revision.status", "build.type", "ssl.version"))
    return "/".join((text, *(str(part) for part in parts if part)))
