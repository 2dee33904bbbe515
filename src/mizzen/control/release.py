"""What runs, as the control plane says it: at `/version`, over ADS, in metrics.

In: the installed package and the settings. Out: istiod's two spellings of it.
"""

import importlib.metadata
import platform
import socket

import msgspec

from mizzen import settings

_UNKNOWN = "unknown"


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """One build at work."""

    version: str
    instance: str
    """The name of the pod, or of the host."""

    def __str__(self) -> str:
        """VERSION-REVISION-STATUS; a package knows neither of the latter."""
        return f"{self.version}-{_UNKNOWN}-{_UNKNOWN}"

    @property
    def identifier(self) -> dict[str, object]:
        """Who answers on a stream, under the keys that istioctl reads."""
        info = {
            "version": self.version,
            "revision": _UNKNOWN,
            "golang_version": f"python{platform.python_version()}",
            "status": _UNKNOWN,
            "tag": self.version,
        }
        return {"Component": "istiod", "ID": self.instance, "Info": info}


def this_release(instance: settings.Instance) -> Release:
    """What runs here."""
    return Release(version=importlib.metadata.version("mizzen"), instance=instance.name or socket.gethostname())
