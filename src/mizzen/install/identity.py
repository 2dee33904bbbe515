"""Which control plane an object belongs to, and how its objects are called and labelled.

Names and labels are Istio's, so that whatever knows Istio's objects finds ours; one label more says that they are
Mizzen's, by which an installation is found again. The unnamed revision and `default` are the same one.
"""

from typing import Any

import msgspec

PART_OF, MIZZEN = "app.kubernetes.io/part-of", "mizzen"
"""The label of everything that an installation makes."""
REVISION_LABEL, TAG_LABEL = "istio.io/rev", "istio.io/tag"
DEFAULT_REVISION = "default"
DEFAULT_NAMESPACE = "istio-system"

COMPONENT_LABEL = "operator.istio.io/component"


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """One control plane of a cluster."""

    namespace: str = DEFAULT_NAMESPACE
    revision: str = ""

    @property
    def revision_label(self) -> str:
        """The revision as labels spell it."""
        return self.revision or DEFAULT_REVISION

    @property
    def is_default(self) -> bool:
        """Whether this is the control plane of who names none."""
        return self.revision_label == DEFAULT_REVISION

    @property
    def suffix(self) -> str:
        """What names of its objects end with."""
        return "" if self.is_default else f"-{self.revision}"

    @property
    def name(self) -> str:
        """Its Deployment, Service and service account."""
        return f"istiod{self.suffix}"

    def labels(self, component: str = "Pilot", **more: str) -> dict[str, str]:
        """Labels of an object; `app` and the like as keywords."""
        return {
            **more,
            PART_OF: MIZZEN,
            REVISION_LABEL: self.revision_label,
            COMPONENT_LABEL: component,
        }


def document(
    version: str, kind: str, name: str, *, labels: dict[str, str], namespace: str = "", **body: Any
) -> dict[str, Any]:
    """An object with its head; without a namespace it is one of the whole cluster."""
    metadata: dict[str, Any] = {"name": name}
    if namespace:
        metadata["namespace"] = namespace
    return {"apiVersion": version, "kind": kind, "metadata": {**metadata, "labels": labels}, **body}
