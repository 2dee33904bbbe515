"""The real istioctl with a cluster's API server behind it: it gets itself a token there, and Mizzen believes it."""

import contextlib
import pathlib
from collections.abc import Iterator

import adsclient
import istioctl_runs
import kube_bed
import pytest
from control_planes import HOST, control_plane
from istioctl_runs import NO_CLUSTER

from mizzen.compile.resource import CLUSTER


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kube_bed.Bed]:
    with kube_bed.running(tmp_path_factory.mktemp("kubernetes")) as bed:
        for namespace in ("istio-system", "shop"):
            bed.call("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
            path = f"/api/v1/namespaces/{namespace}/serviceaccounts"
            with contextlib.suppress(kube_bed.Answer):
                bed.call("POST", path, {"metadata": {"name": "default"}})
        yield bed


async def test_a_token_of_the_cluster_opens_the_token_port(tmp_path: pathlib.Path, bed: kube_bed.Bed) -> None:
    believed = {"token_keys": (str(bed.folder / "accounts.key"),), "token_issuer": kube_bed.ISSUER}
    node = adsclient.node("cart-0", "shop", CLUSTER_ID="c1", PROXY_CONFIG={"discoveryAddress": "here"})
    async with (
        control_plane(tmp_path, **believed) as plane,
        adsclient.Client(plane.target("--grpcAddr"), node=node) as client,
    ):
        await client.subscribe(CLUSTER)
        await client.read_acked()
        flags = ["--xds-address", plane.target("--secureGRPCAddr"), "--insecure", "--authority", HOST, *NO_CLUSTER]
        cluster = bed.kubeconfig()
        answer = await istioctl_runs.run(tmp_path, "proxy-status", *flags, cluster=cluster)
        assert (answer.code, answer.err) == (0, "")
        assert [line.split()[0] for line in answer.out.splitlines()] == ["NAME", "cart-0.shop"]
        page = await istioctl_runs.run(tmp_path, "x", "internal-debug", "--list", *flags, cluster=cluster)
        assert page.code == 0
        assert '"syncz"' in page.out
        elsewhere = ["--istioNamespace", "shop"]
        page = await istioctl_runs.run(tmp_path, "x", "internal-debug", "syncz", *flags, *elsewhere, cluster=cluster)
        assert page.code == 1
        assert "the debug info is not available for current identity" in page.err
