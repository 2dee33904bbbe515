"""Services and Deployments: advice that `istioctl validate` has for those who bring them into the mesh.

None of it is a rule of admission, so `validate_object` has none of it.
"""

from mizzen.api.kube.services import Service
from mizzen.api.kube.workloads import Deployment
from mizzen.api.validate.faults import Faults, error, quote, warning
from mizzen.api.validate.values.names import protocol_of

_DOCS = "https://istio.io/latest/docs/ops"
_REQUIREMENTS = f"{_DOCS}/deployment/application-requirements/"
_SELECTION = f"{_DOCS}/configuration/traffic-management/protocol-selection/"
_KNOWN_AS = ("kubernetes.io/h2c", "kubernetes.io/ws", "kubernetes.io/wss")
_LABELS = (
    ("app", ("app", "app.kubernetes.io/name", "service.istio.io/canonical-name")),
    ("version", ("version", "app.kubernetes.io/version", "service.istio.io/canonical-revision")),
)


def check_service(service: Service, namespace: str) -> Faults:
    """Whether each port says its protocol, in its name or by `appProtocol`; `namespace` is as written."""
    shown = quote(f"{service.metadata.name}/{namespace}/:")
    for index, port in enumerate(service.spec.ports):
        path = f"spec.ports[{index}]"
        if port.protocol == "UDP":
            continue
        if port.app_protocol:
            if not protocol_of(port.app_protocol) and port.app_protocol not in _KNOWN_AS:
                advice = f"This is not recommended, See {_SELECTION}"
                yield error(path, f"service {shown} doesn't follow Istio protocol selection. {advice}")
        elif not port.name:
            advice = f"This is not recommended, See {_REQUIREMENTS}"
            yield error(path, f"service {shown} has an unnamed port. {advice}")
        elif not protocol_of(port.name.partition("-")[0]):
            rule = f"does not follow the Istio naming convention. See {_REQUIREMENTS}"
            yield error(f"{path}.name", f"service {shown} port {quote(port.name)} {rule}")


def check_deployment(deployment: Deployment, namespace: str) -> Faults:
    """Whether metrics will tell what runs, and in which version; `namespace` is as written."""
    labels = deployment.spec.template.metadata.labels
    missing = [name for name, same in _LABELS if not any(label in labels for label in same)]
    if missing:
        shown = quote(f"{deployment.metadata.name}/{namespace}:")
        what = f"Istio metrics and telemetry labels: {', '.join(missing)}"
        yield warning(
            "spec.template.metadata.labels", f"deployment {shown} may not provide {what}. See {_REQUIREMENTS}"
        )
