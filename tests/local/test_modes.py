"""The ways to run without root: two kinds of user namespace, and no namespaces at all.

A plain user without a home runs the sample with an interpreter outside root's home. Subordinate ids need the tools of
the package uidmap, which must be set-uid root, and a line in /etc/subuid; the user gets both in a private view of /etc.
"""

import os
import pathlib
import shutil
import sys
import tempfile
from collections.abc import Iterator

import pytest
from eventually import eventually_blocking
from local_mesh import ROOT, LocalMesh, PlainUser, copy_shop, get, running

from mizzen.local.isolation import interpreter_paths, is_open_to_others

pytestmark = [pytest.mark.local, pytest.mark.envoy]

UID = 4243
LOW_RIGHTS = (
    "setpriv",
    f"--reuid={UID}",
    f"--regid={UID}",
    "--clear-groups",
    "--inh-caps=-all",
    "--bounding-set=-all",
    "--",
)
# The set-uid tools give rights that an emptied bounding set would take away again.
LOW_RIGHTS_WITH_TOOLS = (*LOW_RIGHTS[:4], "--")
VIEW_OF_ETC = """
mount --bind "$1/passwd" /etc/passwd && mount --bind "$1/subid" /etc/subuid && mount --bind "$1/subid" /etc/subgid \
&& shift && exec "$@"
"""


def find_interpreter() -> tuple[str, str]:
    """An interpreter that everybody may read, of the version of this one, and the path on which it finds Mizzen."""
    packages = next(path for path in sys.path if path.endswith("site-packages"))
    path = os.pathsep.join((str(ROOT / "src"), packages))
    if all(map(is_open_to_others, interpreter_paths())):
        return sys.executable, path
    system = f"/usr/bin/python{sys.version_info.major}.{sys.version_info.minor}"
    if os.access(system, os.X_OK) and is_open_to_others(pathlib.Path(packages)):
        return system, path
    pytest.skip(f"neither {sys.executable} nor {system} can be used by a plain user")


@pytest.fixture
def home() -> Iterator[pathlib.Path]:
    """A folder of the user's own; pytest's are closed to others."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="mizzen-user-"))
    (folder / "run").mkdir()
    yield folder
    shutil.rmtree(folder)


def make_user(home: pathlib.Path, prefix: tuple[str, ...]) -> PlainUser:
    python, path = find_interpreter()
    environ = {
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home / "run"),
        "PYTHONPATH": path,
    }
    return PlainUser(uid=UID, python=python, environ=environ, prefix=prefix)


def make_mesh(home: pathlib.Path, user: PlainUser, *arguments: str) -> LocalMesh:
    """The shop without its TCP and outside parts, one pod of each."""
    manifests = copy_shop(home, "ledger.yaml", "rates.yaml")
    for name in ("front.yaml", "cart.yaml"):
        path = manifests / name
        path.write_text(path.read_text().replace("replicas: 2", "replicas: 1"))
    for path in (home, *home.rglob("*")):
        os.chown(path, UID, UID)
    return LocalMesh(manifests, f"test-{os.getpid()}", *arguments, user=user)


def check(mesh: LocalMesh, isolation: str, program_uid: int) -> None:
    assert mesh.state.isolation == isolation
    mesh.wait_served()
    answers = [get(mesh.gateway()) for _ in range(20)]
    assert {item.status for item in answers} == {200}, answers
    caller = "URI=spiffe://cluster.local/ns/shop/sa/front"
    assert all(item.body["cart"]["served_by"]["x-forwarded-client-cert"].endswith(caller) for item in answers)
    denied = get(mesh.gateway(), "/ask-catalog?url=http://cart:8080/").body["catalog"]["answer"]
    assert denied["status"] == 403
    assert mesh.run("exec", "deploy/catalog", "--", "id", "-u").stdout == f"{program_uid}\n"
    eventually_blocking(lambda: mesh.run("proxy-status").stdout.count("SYNCED") == 4 * len(mesh.proxies()))
    assert "Push" in mesh.run("logs", "control-plane").stdout


def check_end(mesh: LocalMesh) -> None:
    assert mesh.stop() == 0
    assert not mesh.processes()
    assert not mesh.layout.root.exists()


def test_a_user_namespace_with_one_user(home):
    with running(make_mesh(home, make_user(home, LOW_RIGHTS))) as mesh:
        check(mesh, "single-user", 0)
        check_end(mesh)


def test_a_user_namespace_with_subordinate_users(home):
    tools = [shutil.which(name) for name in ("newuidmap", "newgidmap")]
    if not all(tools):
        pytest.skip("the package uidmap is not installed")
    (home / "passwd").write_text(pathlib.Path("/etc/passwd").read_text() + f"tester:x:{UID}:{UID}::{home}:/bin/sh\n")
    (home / "subid").write_text("tester:300000:65536\n")
    view = ("unshare", "--mount", "--propagation=private", "sh", "-c", VIEW_OF_ETC, "sh", str(home))
    user = make_user(home, (*view, *LOW_RIGHTS_WITH_TOOLS))
    user.environ["PATH"] += f":{pathlib.Path(str(tools[0])).parent}"
    with running(make_mesh(home, user)) as mesh:
        check(mesh, "user", 65532)
        check_end(mesh)


def test_no_namespaces_at_all(home):
    with running(make_mesh(home, make_user(home, LOW_RIGHTS), "--no-capture")) as mesh:
        check(mesh, "no-capture", UID)
        addresses = {pod.address for pod in mesh.state.pods}
        assert all(address.startswith("127.44.") for address in addresses)
        check_end(mesh)


def test_no_namespaces_after_a_kill_the_kernel_and_the_next_start_clean_up(home):
    mesh = make_mesh(home, make_user(home, LOW_RIGHTS), "--no-capture")
    with running(mesh):
        mesh.kill()
    with running(mesh):
        mesh.wait_served()
        check_end(mesh)


def test_a_user_who_may_make_no_namespaces_is_offered_the_way_without(home):
    """The kernel's switch, set to none in a user namespace in which the user is who they were."""
    forbid = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    same = ("unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c", forbid, "sh")
    mesh = make_mesh(home, make_user(home, (*LOW_RIGHTS, *same)))
    done = mesh.run("up", str(mesh.manifests), check=False)
    assert done.returncode == 1
    assert "namespaces cannot be made here" in done.stderr
    assert "use --no-capture" in done.stderr
