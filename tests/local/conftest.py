"""One shop for all tests that leave it as they found it."""

import os
import pathlib
from collections.abc import Iterator

import pytest
from local_mesh import LocalMesh, copy_shop, running


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalMesh]:
    """The sample shop, running; manifests may be edited if they are restored."""
    manifests = copy_shop(tmp_path_factory.mktemp("local"))
    with running(LocalMesh(manifests, f"test-shop-{os.getpid()}")) as mesh:
        yield mesh.wait_served()


@pytest.fixture
def hello(tmp_path: pathlib.Path) -> pathlib.Path:
    """A directory with the smallest mesh: one server without a sidecar, published on a port."""
    manifests = tmp_path / "hello"
    manifests.mkdir()
    (manifests / "hello.yaml").write_text(HELLO)
    return manifests


HELLO = """\
apiVersion: v1
kind: Service
metadata: {name: hello}
spec:
  type: LoadBalancer
  selector: {app: hello}
  ports: [{name: http, port: 18080, targetPort: 8000}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello}
spec:
  template:
    metadata: {labels: {app: hello}}
    spec:
      containers:
        - name: hello
          command: [python3, -m, http.server, "8000"]
          readinessProbe:
            tcpSocket: {port: 8000}
"""
