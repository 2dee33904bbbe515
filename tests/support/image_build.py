"""Images without Docker: the steps of a Dockerfile, run as root in folders of this machine.

In: a Dockerfile of the checkout. Out: an `Image`: the root folder that it leads to, its configuration, and the size of
each layer. The base is put together from Debian's packages as Docker's slim images are (no documentation, no
translations), by mmdebstrap. A stage is kept by all that it is made of, as Docker's cache does, so two images that
begin alike share the beginning; what no image of a run needs any more is removed at the end of it.

What this machine needs to reach package registries (pip's settings, a certificate of its own) is lent to the steps
and is no part of what they leave.
"""

import contextlib
import hashlib
import os
import pathlib
import shutil
import ssl
import subprocess
from collections.abc import Iterator

import msgspec
from image_dockerfile import DockerfileError, Ignored, Instruction, Stage, parse

ROOT = pathlib.Path(__file__).parents[2]
_MIRROR = "http://deb.debian.org"
_SLIM = ("/usr/share/man/*", "/usr/share/doc/*", "/usr/share/info/*", "/usr/share/locale/*", "/usr/share/lintian/*")
_BASE = "debian:{}-slim"
_LENT = "run/lent"
_DEVICES = ("null", "zero", "full", "random", "urandom")
_STEP = """
set -e
root=$1 step=$2
mount --make-rprivate /
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/dev"
for device in {devices}; do touch "$root/dev/$device"; mount --bind "/dev/$device" "$root/dev/$device"; done
ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs tmpfs "$root/run"
mkdir "$root/{lent}"
[ ! -f "$3" ] || cp "$3" "$root/{lent}/ca.crt"
[ ! -f /etc/pip.conf ] || cp /etc/pip.conf "$root/{lent}/pip.conf"
for file in resolv.conf hosts; do mount --bind "/etc/$file" "$root/etc/$file"; done
exec chroot "$root" /bin/sh -c "$step"
"""


class Layer(msgspec.Struct, frozen=True):
    """What one instruction added."""

    instruction: str
    bytes: int


class Image(msgspec.Struct, frozen=True):
    """One image, unpacked."""

    name: str
    root: pathlib.Path
    environ: dict[str, str]
    user: str
    folder: str
    entrypoint: tuple[str, ...]
    command: tuple[str, ...]
    base: int
    """Bytes of what it is built on."""
    layers: tuple[Layer, ...]


class Builder:
    """Builds below one folder; several images share what they have in common."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._folder = folder
        self._used: set[str] = set()
        self._ignored = Ignored((ROOT / ".dockerignore").read_text())
        folder.mkdir(parents=True, exist_ok=True)

    def build(self, name: str) -> Image:
        """The image of `docker/Dockerfile.NAME`."""
        stages = parse((ROOT / "docker" / f"Dockerfile.{name}").read_text())
        keys: dict[str, str] = {}
        for stage in stages:
            keys[stage.name] = self._stage(stage, keys)
        last = stages[-1]
        key = keys[last.name]
        facts = {one.word: one for one in last.instructions if one.word not in ("RUN", "COPY", "ENV")}
        environ = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        for instruction in last.instructions:
            if instruction.word == "ENV":
                environ |= dict(word.split("=", 1) for word in instruction.words)
        sizes = msgspec.json.decode((self._folder / f"{key}.json").read_bytes(), type=tuple[Layer, ...])
        return Image(
            name=name,
            root=self._folder / key,
            environ=environ,
            user=facts["USER"].text if "USER" in facts else "0",
            folder=facts["WORKDIR"].text if "WORKDIR" in facts else "/",
            entrypoint=facts["ENTRYPOINT"].words if "ENTRYPOINT" in facts else (),
            command=facts["CMD"].words if "CMD" in facts else (),
            base=_size(self._folder / self._base(last.base)),
            layers=sizes,
        )

    def sweep(self) -> None:
        """Remove what no image built since asked for."""
        for path in self._folder.iterdir():
            if path.name.partition(".")[0] not in self._used:
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _stage(self, stage: Stage, keys: dict[str, str]) -> str:
        """The key of a stage, whose root folder is there afterwards."""
        parent = keys[stage.base] if stage.base in keys else self._base(stage.base)
        parts = [parent]
        for instruction in stage.instructions:
            parts.append(f"{instruction.word} {instruction.text}")
            if instruction.source:
                parts.append(keys[instruction.source])
            elif instruction.word == "COPY":
                parts += [self._fingerprint(source) for source in instruction.words[:-1]]
        key = _digest(*parts)
        with self._making(key) as partial:
            if partial is not None:
                _copy(self._folder / parent, partial)
                layers = []
                for instruction in stage.instructions:
                    before = _size(partial)
                    self._carry_out(instruction, partial, keys)
                    layers.append(Layer(f"{instruction.word} {instruction.text}", _size(partial) - before))
                (self._folder / f"{key}.json").write_bytes(msgspec.json.encode(layers))
        return key

    def _base(self, name: str) -> str:
        suite = name.removeprefix("debian:").removesuffix("-slim")
        if name != _BASE.format(suite):
            raise DockerfileError(f"{name}: no base that can be put together here")
        key = _digest(name)
        with self._making(key) as partial:
            if partial is not None:
                _debootstrap(suite, partial)
        return key

    @contextlib.contextmanager
    def _making(self, key: str) -> Iterator[pathlib.Path | None]:
        """A folder to fill for that key; None if it has been filled already."""
        self._used.add(key)
        final, partial = self._folder / key, self._folder / f"{key}.partial"
        if final.exists():
            yield None
            return
        shutil.rmtree(partial, ignore_errors=True)
        yield partial
        partial.rename(final)

    def _carry_out(self, instruction: Instruction, root: pathlib.Path, keys: dict[str, str]) -> None:
        if instruction.word == "RUN":
            _run(root, instruction.text)
        elif instruction.word == "COPY":
            *sources, target = instruction.words
            for source in sources:
                origin = self._folder / keys[instruction.source] if instruction.source else ROOT
                into = root / target.lstrip("/")
                found = origin / source.lstrip("/")
                if target.endswith("/") and not found.is_dir():
                    into /= found.name
                into.parent.mkdir(parents=True, exist_ok=True)
                if found.is_dir():
                    shutil.copytree(
                        found,
                        into,
                        symlinks=True,
                        dirs_exist_ok=True,
                        ignore=None if instruction.source else self._left_out,
                    )
                else:
                    shutil.copy2(found, into)

    def _fingerprint(self, source: str) -> str:
        """A digest of what COPY takes from the checkout."""
        if source in self._ignored or not (ROOT / source).exists():
            raise DockerfileError(f"COPY {source}: no part of what images are built from")
        parts = [source]
        for path in sorted((ROOT / source).rglob("*")) if (ROOT / source).is_dir() else [ROOT / source]:
            name = str(path.relative_to(ROOT))
            if name not in self._ignored and (path.is_file() or path.is_symlink()):
                parts += [
                    name,
                    str(path.lstat().st_mode),
                    str(path.readlink()) if path.is_symlink() else _digest_of(path),
                ]
        return _digest(*parts)

    def _left_out(self, folder: str, names: list[str]) -> list[str]:
        return [name for name in names if str((pathlib.Path(folder) / name).relative_to(ROOT)) in self._ignored]


def _debootstrap(suite: str, target: pathlib.Path) -> None:
    options = ["--dpkgopt=force-unsafe-io", *(f"--dpkgopt=path-exclude={pattern}" for pattern in _SLIM)]
    sources = [f"deb {_MIRROR}/debian {suite} main", f"deb {_MIRROR}/debian {suite}-updates main"]
    sources.append(f"deb {_MIRROR}/debian-security {suite}-security main")
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", *options, suite, str(target), *sources]
    _check(subprocess.run(command, capture_output=True, text=True), f"base {suite}")
    for name in ("resolv.conf", "hosts"):
        (target / "etc" / name).write_text("")


def _run(root: pathlib.Path, step: str) -> None:
    environ = {
        name: value for name, value in os.environ.items() if name.startswith("PIP_") or name.lower().endswith("_proxy")
    }
    certificate = os.environ.get("PIP_CERT") or ssl.get_default_verify_paths().cafile or ""
    environ |= {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "DEBIAN_FRONTEND": "noninteractive"}
    environ |= {"PIP_CERT": f"/{_LENT}/ca.crt"} if pathlib.Path(certificate).is_file() else {}
    environ |= {"PIP_CONFIG_FILE": f"/{_LENT}/pip.conf"}
    script = _STEP.format(devices=" ".join(_DEVICES), lent=_LENT)
    command = [
        "unshare",
        "--mount",
        "--pid",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        script,
        "sh",
        str(root),
        step,
        certificate,
    ]
    _check(subprocess.run(command, env=environ, capture_output=True, text=True), f"RUN {step}")


def _check(done: "subprocess.CompletedProcess[str]", what: str) -> None:
    if done.returncode:
        raise DockerfileError(f"{what}: {done.returncode}\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def _copy(source: pathlib.Path, target: pathlib.Path) -> None:
    subprocess.run(["cp", "-a", "--reflink=auto", str(source), str(target)], check=True)


def _size(root: pathlib.Path) -> int:
    """Bytes of all files below, each counted once however many names it has."""
    seen: dict[int, int] = {}
    for folder, _, files in os.walk(root):
        for name in files:
            status = os.lstat(os.path.join(folder, name))
            seen[status.st_ino] = status.st_size
    return sum(seen.values())


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:24]


def _digest_of(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
