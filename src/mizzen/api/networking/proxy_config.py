"""ProxyConfig: settings of a workload's proxy. The mesh config's ProxyConfig is another, larger shape (`mesh`)."""

from collections.abc import Mapping

from mizzen.api.message import ProtoMessage
from mizzen.api.meta import Object
from mizzen.api.networking.selectors import MatchLabels
from mizzen.api.scalars import Int32


class ProxyImage(ProtoMessage, frozen=True, kw_only=True):
    """Which build of the proxy's image."""

    image_type: str = ""


class ProxyConfigSpec(ProtoMessage, frozen=True, kw_only=True):
    """Applied over the mesh config's default when a pod is injected."""

    selector: MatchLabels | None = None
    concurrency: Int32 | None = None
    environment_variables: Mapping[str, str] = {}
    image: ProxyImage | None = None


class ProxyConfig(Object, frozen=True, kw_only=True):
    """The kind ProxyConfig of networking.istio.io."""

    spec: ProxyConfigSpec = ProxyConfigSpec()
