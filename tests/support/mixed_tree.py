"""A tree as repositories hold it: manifests among everything else that lies in such places."""

import pathlib

NOTES = "Thank you for installing {{ .Chart.Name }}.\n"
RENDERED = """---
# Source: shop/templates/cart.yaml
apiVersion: v1
kind: Service
metadata: {name: cart, namespace: shop}
spec: {selector: {app: cart}, ports: [{name: http, port: 80}]}
---
---

---
# Source: shop/templates/empty.yaml
# nothing is enabled
---
# Source: shop/templates/route.yaml
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: cart, namespace: shop}
spec: {hosts: [cart], http: [{route: [{destination: {host: cart}}]}]}
"""
TEMPLATE = """{{- if .Values.enabled }}
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: {{ .Release.Name }}
{{- end }}
"""
QUOTED_TEMPLATE = """apiVersion: v1
kind: Service
metadata: {name: "{{ .Release.Name }}", namespace: shop}
spec: {ports: [{name: http, port: 80}]}
"""
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
"""
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n" for before, name in zip("abcdef", "bcdefg", strict=True)
)
FILES: dict[str, str | bytes] = {
    "base/namespace.yml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop, labels: {istio-injection: enabled}}\n",
    "base/kustomization.yaml": "resources: [namespace.yml]\n",
    "base/old/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: []\n",
    "base/patch.yaml": "- {op: replace, path: /spec/replicas, value: 3}\n",
    "chart/Chart.yaml": "apiVersion: v2\nname: shop\nversion: 1.0.0\n",
    "chart/values.yaml": "kind: dev\nreplicas: 3\nreplicas: 4\n",
    "chart/templates/NOTES.txt": NOTES,
    "chart/templates/_helpers.tpl": '{{- define "name" -}}x{{- end }}\n',
    "chart/templates/route.yaml": TEMPLATE,
    "chart/templates/service.yaml": QUOTED_TEMPLATE,
    "crds/widgets.yaml": CRD,
    "crds/widget.yaml": "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: w}\nspec: 7\n",
    "json/pod.json": (
        '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "cart-0", "namespace": "shop", "labels": '
        '{"app": "cart"}}, "spec": {"containers": [{"name": "istio-proxy", "image": "proxy"}]}}'
    ),
    "json/list.json": (
        '{"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", '
        '"metadata": {"name": "l"}}, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "cart", '
        '"namespace": "shop"}}]}'
    ),
    "json/package.json": '{"name": "shop", "version": "1.0.0"}',
    "jobs/migrate.yaml": (
        "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: migrate-, namespace: shop}\n"
        "spec: {template: {spec: {containers: [{name: a, image: a}]}}}\n"
    ),
    "odd/empty.yaml": "",
    "odd/comments.yaml": "# nothing\n# at all\n",
    "odd/bomb.yaml": BOMB,
    "odd/logo.yaml": b"\x89PNG\r\n\x1a\n\x00\xff\xfe",
    "odd/prose.yaml": "Dear reader: this is: no YAML [at all\n",
    "rendered.yaml": RENDERED,
    "README.md": "# Shop\n",
    ".hidden/secret.yaml": "kind: [\n",
}


def write(folder: pathlib.Path) -> pathlib.Path:
    """The tree, with a link to a file, a link to a folder above it and one that leads nowhere."""
    for name, content in FILES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    (folder / "links").mkdir()
    (folder / "links" / "again.yaml").symlink_to(folder / "rendered.yaml")
    (folder / "links" / "loop").symlink_to(folder)
    (folder / "links" / "gone.yaml").symlink_to(folder / "nothing.yaml")
    return folder
