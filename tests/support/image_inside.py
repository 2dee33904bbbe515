"""The last step before a container's program: its file system and its rights, as a container runtime makes them.

Run as a script in namespaces of its own, never imported: `image_inside.py SPEC`, a JSON file. The image's root gets an
upper layer in memory, volumes are mounted into it, all of it is made read-only if the container says so, and the
program starts with the user and the capabilities that are left to it. `/scratch/upper` is then what was written to
the image's own file system.
"""

import json
import os
import subprocess
import sys

_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def find_inside(root: str, path: str, *, folder: bool) -> str:
    """Where a path of the container lies on this machine, made if it is missing; links lead where they would inside."""
    made = "mkdir -p" if folder else 'mkdir -p "${1%/*}" && touch'
    script = f'{made} "$1" && realpath "$1"'
    done = subprocess.run(
        ["chroot", root, "/bin/sh", "-c", script, "sh", path], check=True, capture_output=True, text=True
    )
    return root + done.stdout.strip()


def lay_root(image: str, scratch: str) -> str:
    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "tmpfs", scratch)
    for name in ("upper", "work", "root"):
        os.mkdir(f"{scratch}/{name}")
    root = f"{scratch}/root"
    mount("-t", "overlay", "-o", f"lowerdir={image},upperdir={scratch}/upper,workdir={scratch}/work", "overlay", root)
    return root


def lay_devices(root: str) -> None:
    mount("-t", "proc", "proc", f"{root}/proc")
    mount("-t", "sysfs", "-o", "ro", "sysfs", f"{root}/sys")
    mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", f"{root}/dev")
    for name in _DEVICES:
        open(f"{root}/dev/{name}", "w").close()
        mount("--bind", f"/dev/{name}", f"{root}/dev/{name}")
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        os.symlink(f"/proc/self/fd/{number}", f"{root}/dev/{name}")
    os.symlink("/proc/self/fd", f"{root}/dev/fd")


def main() -> None:
    with open(sys.argv[1]) as file:
        spec = json.load(file)
    root = lay_root(spec["image"], spec["scratch"])
    lay_devices(root)
    volumes = [(volume, find_inside(root, volume["path"], folder=volume["folder"])) for volume in spec["volumes"]]
    if spec["read_only"]:
        mount("-o", "remount,ro", root)
    for volume, inside in volumes:
        mount("--bind", volume["source"], inside)
        if volume["read_only"]:
            mount("-o", "remount,ro,bind", inside)
    os.chroot(root)
    os.chdir(spec["folder"])
    rights = ["/usr/bin/setpriv", "--reuid", spec["user"], "--regid", spec["group"], "--clear-groups"]
    rights += ["--inh-caps", spec["capabilities"], "--bounding-set", spec["capabilities"]]
    rights += ["--no-new-privs"] if spec["no_new_privileges"] else []
    os.execve(rights[0], [*rights, "--", *spec["command"]], spec["environ"])


main()
