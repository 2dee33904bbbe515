"""What only verified proxies are told, by a whole control plane: Secrets, and the logins of registries."""

import acceptance_material
import pytest
from adsclient import CHANNEL_OPTIONS, Client, node
from control_planes import HOST, Plane, control_plane

from mizzen import protos
from mizzen.compile.resource import EXTENSION, SECRET

CHAIN, KEY = (part.decode() for part in acceptance_material.leaf())
MODULE = "extensions.istio.io/trafficextension/edge.module~istio-translated-wasmplugin"
CREDENTIAL = "kubernetes://shop-tls"
POD = {"ip": "10.0.0.7", "name": "gw-0", "namespace": "edge"}


def indented(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines())


MANIFESTS = f"""
kind: Pod
apiVersion: v1
metadata: {{name: gw-0, namespace: edge, labels: {{istio: ingress}}}}
spec: {{serviceAccountName: ingress, containers: []}}
status: {{podIP: 10.0.0.7}}
---
kind: Pod
apiVersion: v1
metadata: {{name: app-0, namespace: edge, labels: {{app: app}}}}
spec: {{serviceAccountName: app, containers: []}}
status: {{podIP: 10.0.0.8}}
---
kind: Gateway
apiVersion: networking.istio.io/v1
metadata: {{name: shop, namespace: edge}}
spec:
  selector: {{istio: ingress}}
  servers:
    - port: {{number: 443, name: https, protocol: HTTPS}}
      hosts: ["*"]
      tls: {{mode: SIMPLE, credentialName: shop-tls}}
---
kind: Secret
apiVersion: v1
metadata: {{name: shop-tls, namespace: edge}}
stringData:
  tls.crt: |
{indented(CHAIN)}  tls.key: |
{indented(KEY)}---
kind: Secret
apiVersion: v1
metadata: {{name: pull, namespace: edge}}
stringData: {{.dockerconfigjson: the-login}}
---
kind: WasmPlugin
apiVersion: extensions.istio.io/v1alpha1
metadata: {{name: module, namespace: edge}}
spec: {{url: "oci://registry.example/m", imagePullSecret: pull, selector: {{matchLabels: {{istio: ingress}}}}}}
"""


@pytest.fixture
async def plane(tmp_path):
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "mesh.yaml").write_text(MANIFESTS)
    async with control_plane(tmp_path) as running:
        yield running


def caller(plane: Plane, account: str, *, said: str | None, **pod: str) -> Client:
    """A proxy that has proved an account and says to be a gateway's pod, of the account `said` or of none."""
    claims = node(kind="router", service_account=said or "", **{**POD, **pod})
    return Client(
        plane.target("--secureGRPCAddr"),
        node=claims,
        credentials=plane.credentials(),
        token=plane.token("edge", account),
        options=(*CHANNEL_OPTIONS, ("grpc.ssl_target_name_override", HOST)),
    )


async def secrets_of(client: Client) -> list[str]:
    async with client:
        await client.subscribe(SECRET, CREDENTIAL)
        return (await client.read()).names


def login_in(data: bytes) -> str:
    config = protos.unpack(protos.message_class("google.protobuf.Any").FromString(data))
    variables = protos.unpack(config.typed_config).config.vm_config.environment_variables.key_values
    return str(variables["ISTIO_META_WASM_IMAGE_PULL_SECRET"])


async def test_a_gateway_gets_its_certificate_whether_it_says_its_account_or_not(plane):
    for said in ("ingress", None):
        assert await secrets_of(caller(plane, "ingress", said=said)) == [CREDENTIAL]


@pytest.mark.parametrize(
    "pod",
    [{}, {"ip": "10.0.0.8", "name": "app-0"}, {"ip": "10.0.0.99", "name": "nobody"}],
    ids=["the gateway's own name", "its own name", "an unknown name"],
)
async def test_an_application_of_the_same_namespace_gets_it_under_no_name(plane, pod):
    assert await secrets_of(caller(plane, "app", said=None, **pod)) == []


async def test_logins_are_for_proxies_that_have_proved_who_they_are(plane):
    found = {}
    for who, client in {
        "verified": caller(plane, "ingress", said="ingress"),
        "anybody": Client(plane.target("--grpcAddr"), node=node(kind="router", service_account="ingress", **POD)),
    }.items():
        async with client:
            await client.subscribe(EXTENSION, MODULE)
            found[who] = login_in((await client.read()).resources[MODULE])
    assert found == {"verified": "the-login", "anybody": ""}
