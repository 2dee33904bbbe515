"""The effective ProxyConfig of a proxy: what its agent says is in force, else the mesh's default.

In: the JSON that the node sent, if any. Out: a `ProxyConfig`. Golden cases: gateway/topology, telemetry/proxy-config.
"""

import msgspec

from mizzen.api.careful import read_carefully
from mizzen.api.mesh.proxy import ProxyConfig
from mizzen.incremental import Engine, query
from mizzen.model import mesh


@query
def proxy_config(db: Engine, text: str | None) -> ProxyConfig:
    """The settings that a node sent of itself; they replace the mesh's default whole, nothing is merged."""
    if text is None:
        return mesh.mesh_config(db).default_config or ProxyConfig()
    value, _ = read_carefully(msgspec.json.decode(text), ProxyConfig, protobuf_json=True)
    return value
