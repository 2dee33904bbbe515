"""A mesh whose every program comes out of our images: the installed control plane, and pods that it injects.

In: images and a network. Out: containers, each with what its manifest says: the control plane's Deployment as `mizzen
manifest generate` prints it (with the objects of the mesh as files in the place of an API server), pods as the installed
injector makes them, and a managed gateway as the control plane would deploy it.
"""

import pathlib
import shlex
import time
from collections.abc import Mapping
from typing import Any

import yaml
from cli_runs import run
from eventually import eventually_blocking
from image_build import Image
from image_containers import Kubelet, Running
from plugged_authority import make_node
from pod_net import Network
from pod_net import Pod as Namespace

from mizzen.api.decode import decode_object
from mizzen.api.kube.pods import Container, Pod
from mizzen.api.meta import Key, Object
from mizzen.ca import certificates, tokens
from mizzen.inject.pod import inject_pod
from mizzen.inject.values import decode_injector
from mizzen.inject.workload import Owner
from mizzen.install.manifests import manifests
from mizzen.install.values import lay_over

CONTROL_PLANE = "istiod.istio-system.svc"
_OBJECTS, _TOKEN_KEY = "/etc/mizzen/objects", "/etc/mizzen/token-key"
_MOUNTS = {"objects": _OBJECTS, "token-key": _TOKEN_KEY}
_FROM_FILES = {
    "pilot": {
        "extraContainerArgs": [f"--config={_OBJECTS}", f"--tokenKey={_TOKEN_KEY}/key.pem"],
        "volumes": [
            {"name": "objects", "configMap": {"name": "objects"}},
            {"name": "token-key", "secret": {"secretName": "token-key"}},
        ],
        "volumeMounts": [{"name": name, "mountPath": path} for name, path in _MOUNTS.items()],
    }
}
_GATEWAY = """
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: apps}
spec:
  gatewayClassName: istio
  listeners: [{name: http, port: 80, protocol: HTTP}]
"""
_WEB = """
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: apps}}
spec:
  selector: {{app: web}}
  ports: [{{name: http, port: 8080}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: web-1, namespace: apps, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
ports: [{{name: http, port: 8080, protocol: TCP}}]
endpoints: [{{addresses: [{address}], conditions: {{ready: true}}, targetRef: {{kind: Pod, name: web, namespace: apps}}}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: web, namespace: apps}}
spec:
  parentRefs: [{{name: edge}}]
  rules: [{{backendRefs: [{{name: web, port: 8080}}]}}]
---
apiVersion: security.istio.io/v1
kind: PeerAuthentication
metadata: {{name: default, namespace: apps}}
spec: {{mtls: {{mode: STRICT}}}}
"""


class Mesh:
    """Its objects, and what runs of them."""

    def __init__(self, images: Mapping[str, Image], network: Network) -> None:
        self.images = images
        self._network = network
        self._objects: dict[Key, Object] = {}
        self._documents: list[dict[str, Any]] = []
        values = lay_over([_FROM_FILES])
        self._tag = f"{values.text('global.hub')}/{{}}:{values.text('global.tag')}"
        self._installed = manifests(values)
        self._injection = decode_injector(self._find("ConfigMap", "istio-sidecar-injector"))
        self._lay_credentials()
        self._kubelet = Kubelet(network.folder, self._objects.get, self._issue)
        self.namespaces: dict[str, Namespace] = {}

    def image_of(self, container: Container) -> Image:
        """The image that a manifest names, as `docs/images.md` says to call them."""
        names = {"pilot": "control-plane", "proxyv2": "sidecar"}
        return self.images[{self._tag.format(name): built for name, built in names.items()}[container.image]]

    # -- objects ------------------------------------------------------------------------------------------------------

    def _find(self, kind: str, name: str) -> dict[str, Any]:
        (found,) = [each for each in self._installed if each["kind"] == kind and each["metadata"]["name"] == name]
        return found

    def _lay(self, document: dict[str, Any]) -> Object:
        decoded = decode_object(document)
        assert decoded.key is not None, decoded.problems
        assert decoded.object is not None, decoded.problems
        self._objects[decoded.key] = decoded.object
        return decoded.object

    def _lay_config(self, kind: str, namespace: str, name: str, texts: Mapping[str, str]) -> None:
        field = "stringData" if kind == "Secret" else "data"
        metadata = {"namespace": namespace, "name": name}
        self._lay({"apiVersion": "v1", "kind": kind, "metadata": metadata, field: dict(texts)})

    def _lay_credentials(self) -> None:
        root = make_node("root of this test", time.time())
        key = tokens.generate_key()
        self._issuer = tokens.TokenIssuer(key, time.time)
        signer = {"ca-cert.pem": root.pem, "ca-key.pem": certificates.encode_key(root.key)}
        files = {**signer, "root-cert.pem": root.pem, "cert-chain.pem": b""}
        texts = {name: content.decode() for name, content in files.items()}
        self._lay_config("Secret", "istio-system", "cacerts", texts)
        self._lay_config("Secret", "istio-system", "token-key", {"key.pem": tokens.encode_private_key(key).decode()})
        self._lay_config("ConfigMap", "apps", "istio-ca-root-cert", {"root-cert.pem": root.pem.decode()})

    def _issue(self, namespace: str, account: str, pod: str, audience: str) -> str:
        return self._issuer.issue(tokens.ServiceAccount(namespace=namespace, name=account, pod=pod), (audience,))

    # -- pods ---------------------------------------------------------------------------------------------------------

    def injected(self, name: str, annotations: Mapping[str, str] | None = None) -> Pod:
        """A pod of the app `name`, as the injector makes it, in a network namespace of its own."""
        metadata = {"name": name, "namespace": "apps", "labels": {"app": name}, "annotations": dict(annotations or {})}
        app = {"name": "app", "image": "app", "ports": [{"containerPort": 8080}]}
        owner = Owner(api_version="apps/v1", kind="Deployment", name=name)
        outcome = inject_pod({"metadata": metadata, "spec": {"containers": [app]}}, config=self._injection, owner=owner)
        assert outcome.injected, outcome
        return self._place(name, outcome.pod)

    def gateway(self) -> Pod:
        """The pod of the managed gateway `edge`."""
        folder = self._network.folder
        (folder / "gateway.yaml").write_text(_GATEWAY)
        (folder / "injector.yaml").write_text(yaml.safe_dump(self._find("ConfigMap", "istio-sidecar-injector")))
        told = ("--injectConfigFile", folder / "injector.yaml", "--valuesFile", self._values_file(folder))
        printed = run("manifest", "gateway", "-f", folder / "gateway.yaml", *told)
        assert printed.exit_code == 0, printed.output
        documents = list(yaml.safe_load_all(printed.stdout))
        self._documents += [*documents, yaml.safe_load(_GATEWAY)]
        (deployment,) = [each for each in documents if each["kind"] == "Deployment"]
        return self._place("edge", deployment["spec"]["template"])

    def _values_file(self, folder: pathlib.Path) -> pathlib.Path:
        path = folder / "values.json"
        path.write_text(self._find("ConfigMap", "istio-sidecar-injector")["data"]["values"])
        return path

    def _place(self, name: str, template: Mapping[str, Any], namespace: str = "apps") -> Pod:
        place = self.namespaces[name] = self._network.pod(name)
        metadata = {**template["metadata"], "name": name, "namespace": namespace, "uid": f"uid-of-{name}"}
        status = {
            "phase": "Running",
            "podIP": place.address,
            "podIPs": [{"ip": place.address}],
            "hostIP": self._network.host,
        }
        ready = {"conditions": [{"type": "Ready", "status": "True"}]}
        spec = {**template["spec"], "nodeName": "node"}
        document = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec, "status": status | ready}
        self._documents.append(document)
        for sysctl in (template["spec"].get("securityContext") or {}).get("sysctls", ()):
            path = "/proc/sys/" + sysctl["name"].replace(".", "/")
            place.run("sh", "-c", f"echo {shlex.quote(sysctl['value'])} > {path}")
        pod = self._lay(document)
        assert isinstance(pod, Pod)
        return pod

    def start(self, pod: Pod, container: Container) -> Running:
        """Start one container of a pod."""
        place = self.namespaces[pod.metadata.name]
        place.name_hosts({CONTROL_PLANE: self.namespaces["istiod"].address})
        return self._kubelet.start(self.image_of(container), pod, container, place)

    def run_program(self, image: str, *command: str, pod: str = "alone", **rights: Any) -> Running:
        """Start a program of an image that no manifest names, beside a pod or in a network of its own."""
        if pod not in self.namespaces:
            self.namespaces[pod] = self._network.pod(pod)
        return self._kubelet.start_program(self.images[image], command, self.namespaces[pod], name=pod, **rights)

    def start_control_plane(self) -> Running:
        """Start what the installation deploys; it knows all pods that are there by now."""
        template = self._find("Deployment", "istiod")["spec"]["template"]
        pod = self._place("istiod", template, "istio-system")
        texts = {f"object-{at}.yaml": yaml.safe_dump(each) for at, each in enumerate(self._documents)}
        texts |= {
            "mesh.yaml": yaml.safe_dump(self._find("ConfigMap", "istio")),
            "web.yaml": _WEB.format(address=self.namespaces["web"].address),
        }
        self._lay_config("ConfigMap", "istio-system", "objects", texts)
        (deployed,) = pod.spec.containers
        running = self.start(pod, deployed)
        self.probe(pod, deployed, running)
        return running

    def probe(self, pod: Pod, probed: Container, running: Running, seconds: float = 180.0) -> None:
        """Wait until a container's readiness probe succeeds, asked from outside of the pod as a kubelet does."""
        assert probed.readiness_probe is not None
        asked = probed.readiness_probe.http_get
        assert asked is not None
        address = self.namespaces[pod.metadata.name].address
        outside = self.namespaces["istiod"]

        def succeeds() -> bool:
            assert running.is_running, running.log
            return outside.get(int(asked.port or 0), asked.path, address)[0] == 200

        try:
            eventually_blocking(succeeds, seconds=seconds, every=0.2)
        except AssertionError:
            print(running.log)
            raise


def container(pod: Pod, name: str) -> Container:
    """A container or init container of a pod by its name."""
    (found,) = [each for each in (*pod.spec.init_containers, *pod.spec.containers) if each.name == name]
    return found
