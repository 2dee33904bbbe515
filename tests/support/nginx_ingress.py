"""nginx as ingress-nginx configures it: what a migration is held against.

In: Ingresses as plain objects, the ports of their Services. Out: an nginx that runs with the servers and locations that
ingress-nginx would write for them. What it does in Lua (redirects to HTTPS, canaries) is done in plain directives.
Written from the behaviour of ingress-nginx alone; nothing of the migration is used here.
"""

import asyncio
import contextlib
import os
import pathlib
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from traffic_certificates import ROOT

PREFIX = "nginx.ingress.kubernetes.io/"
DEFAULT_BACKEND = "return 404;"


def find_nginx() -> str | None:
    """The binary, where there is one."""
    return os.environ.get("NGINX_PATH") or shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")


class Location(NamedTuple):
    path: str
    type: str
    own: Mapping[str, str]
    upstream: str
    canary: tuple[Mapping[str, str], str] | None = None

    def get(self, name: str, default: str = "") -> str:
        return self.own.get(PREFIX + name, default)

    @property
    def needs_rewrite(self) -> bool:
        return self.get("rewrite-target") not in ("", self.path)


class Server:
    """A host while Ingresses add to it."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.secure = False
        self.locations: list[Location] = []
        self.aliases: list[str] = []
        self.www = False
        self.default = DEFAULT_BACKEND

    def find(self, path: str, kind: str) -> int | None:
        return next((i for i, one in enumerate(self.locations) if (one.path, one.type) == (path, kind)), None)


def configuration(
    ingresses: Sequence[dict[str, Any]],
    ports: Mapping[str, int],
    *,
    folder: pathlib.Path,
    http: int,
    https: int,
    headers: Mapping[str, Mapping[str, str]],
) -> str:
    """The file; `ports` are those of `namespace-service-port`, `headers` the ConfigMaps of custom headers."""
    servers = _servers(ingresses)
    blocks = [_server(one, http, https, headers) for one in servers.values()]
    for one in servers.values():
        other = one.host.removeprefix("www.") if one.host.startswith("www.") else f"www.{one.host}"
        if one.www and other not in servers:
            body = f"return 308 $scheme://{one.host}$request_uri;"
            blocks.append(_block(f"server_name {other};", http, https if one.secure else None, [body]))
    if "" not in servers:
        blocks.append(_block("server_name _;", http, None, [f"location / {{ {DEFAULT_BACKEND} }}"], default=True))
    upstreams = "\n".join(f"upstream {name} {{ server 127.0.0.1:{port}; }}" for name, port in ports.items())
    temporary = "\n".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    body = "\n".join(blocks)
    return f"""
worker_processes 1; daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/nginx.log;
events {{ worker_connections 512; }}
http {{
access_log off; {temporary}
server_names_hash_bucket_size 128; port_in_redirect off; proxy_http_version 1.1;
map $request_uri $slashless {{ ~^(.*)/$ $1; default $request_uri; }}
ssl_certificate {folder}/tls.crt; ssl_certificate_key {folder}/tls.key;
{upstreams}
{body}
}}
"""


# -- servers ------------------------------------------------------------------------------------------------------


def _servers(ingresses: Sequence[dict[str, Any]]) -> dict[str, Server]:
    servers: dict[str, Server] = {}
    canaries = [one for one in ingresses if _own(one).get(PREFIX + "canary") == "true"]
    for ingress in ingresses:
        if ingress in canaries:
            continue
        spec, own = ingress["spec"], _own(ingress)
        rules = spec.get("rules") or []
        hosts = dict.fromkeys(rule.get("host", "") for rule in rules) or {"": None}
        for host in hosts:
            server = servers.setdefault(host, Server(host))
            server.secure |= any(host in entry.get("hosts", ()) for entry in spec.get("tls") or ())
            server.aliases += [a.strip() for a in own.get(PREFIX + "server-alias", "").split(",") if a.strip()]
            server.www |= own.get(PREFIX + "from-to-www-redirect") == "true"
        for rule in rules:
            server = servers[rule.get("host", "")]
            for entry in (rule.get("http") or {}).get("paths", ()):
                path, kind = entry.get("path", "/"), entry.get("pathType", "ImplementationSpecific")
                if server.find(path, kind) is None:
                    server.locations.append(Location(path, kind, own, _upstream(ingress, entry["backend"])))
        if "defaultBackend" in spec:
            for host in hosts:
                server = servers[host]
                if not any(one.path == "/" and one.type != "Exact" for one in server.locations):
                    upstream = _upstream(ingress, spec["defaultBackend"])
                    server.locations.append(Location("/", "Prefix", own, upstream))
    for ingress in canaries:
        _add_canary(servers, ingress)
    return servers


def _add_canary(servers: Mapping[str, Server], ingress: dict[str, Any]) -> None:
    for rule in ingress["spec"]["rules"]:
        for entry in rule["http"]["paths"]:
            server = servers[rule["host"]]
            at = server.find(entry["path"], entry["pathType"])
            assert at is not None
            canary = (_own(ingress), _upstream(ingress, entry["backend"]))
            server.locations[at] = server.locations[at]._replace(canary=canary)


def _own(ingress: dict[str, Any]) -> Mapping[str, str]:
    annotations: Mapping[str, str] = ingress["metadata"].get("annotations") or {}
    return annotations


def _upstream(ingress: dict[str, Any], backend: dict[str, Any]) -> str:
    service = backend["service"]
    port = service["port"].get("number") or service["port"]["name"]
    return f"{ingress['metadata']['namespace']}-{service['name']}-{port}"


def _server(server: Server, http: int, https: int, headers: Mapping[str, Mapping[str, str]]) -> str:
    body: list[str] = []
    enforces = any(one.needs_rewrite or one.get("use-regex") == "true" for one in server.locations)
    by_length = sorted(server.locations, key=lambda one: one.path, reverse=True)
    by_length.sort(key=lambda one: len(one.path), reverse=True)
    for one in by_length:
        if one.get("app-root"):
            body.append(f"if ($uri = /) {{ return 302 $scheme://$http_host{one.get('app-root')}; }}")
    for one in _expanded(by_length):
        body.append(f"location {_modifier(one, enforces)} {{ {' '.join(_directives(one, server, headers))} }}")
    if not any(one.path == "/" and one.type != "Exact" for one in server.locations):
        root = '~* "^/"' if enforces else "/"
        body.append(f"location {root} {{ {DEFAULT_BACKEND} }}")
    names = f"server_name {' '.join((server.host or '_', *server.aliases))};"
    return _block(names, http, https if server.secure else None, body, default=not server.host)


def _block(names: str, http: int, https: int | None, body: Iterable[str], *, default: bool = False) -> str:
    mark = " default_server" if default else ""
    listens = f"listen 127.0.0.1:{http}{mark};" + (f" listen 127.0.0.1:{https} ssl;" if https else "")
    inner = "\n".join(body)
    return f"server {{ {listens} {names}\n{inner}\n}}"


# -- locations ----------------------------------------------------------------------------------------------------


def _expanded(locations: Iterable[Location]) -> Iterable[Location]:
    """Prefixes by element are a location with a slash behind it and one for the path itself."""
    locations = list(locations)
    exact = {one.path for one in locations if one.type == "Exact"}
    for one in locations:
        if one.path == "/" or one.type != "Prefix" or one.needs_rewrite or one.get("use-regex") == "true":
            yield one
            continue
        slashed = one.path if one.path.endswith("/") else f"{one.path}/"
        yield one._replace(path=slashed)
        if one.path not in exact:
            yield one._replace(type="Exact")


def _modifier(one: Location, enforces: bool) -> str:
    if enforces:
        return f'~* "^{one.path}"'
    return f"= {one.path}" if one.type == "Exact" else one.path


def _directives(one: Location, server: Server, headers: Mapping[str, Mapping[str, str]]) -> Iterable[str]:
    for kind in ("temporal", "permanent"):
        if one.get(f"{kind}-redirect"):
            code = one.get(f"{kind}-redirect-code", "302" if kind == "temporal" else "301")
            yield f"return {code} {one.get(f'{kind}-redirect')};"
            break
    if one.get("force-ssl-redirect") == "true" or (server.secure and one.get("ssl-redirect") != "false"):
        kept = "$request_uri" if one.get("preserve-trailing-slash") == "true" else "$slashless"
        yield f"if ($scheme = http) {{ return 308 https://$host{kept}; }}"
    yield from (f"deny {cidr};" for cidr in one.get("denylist-source-range").split(",") if cidr)
    allowed = [cidr for cidr in one.get("whitelist-source-range").split(",") if cidr]
    yield from (f"allow {cidr};" for cidr in allowed)
    if allowed:
        yield "deny all;"
    yield f"proxy_set_header Host {one.get('upstream-vhost', '$http_host')};"
    yield one.get("configuration-snippet").replace("more_set_headers", "# ")
    for name, value in headers.get(one.get("custom-headers"), {}).items():
        yield f'add_header {name} "{value}" always;'
    yield from _chosen(one)
    if one.needs_rewrite:
        if one.get("x-forwarded-prefix"):
            yield f'proxy_set_header X-Forwarded-Prefix "{one.get("x-forwarded-prefix")}";'
        yield f'rewrite "(?i){one.path}" {one.get("rewrite-target")} break;'
    scheme = "https" if one.get("backend-protocol") == "HTTPS" else "http"
    yield f"proxy_pass {scheme}://$chosen;"


def _chosen(one: Location) -> Iterable[str]:
    """The upstream: by the canary's header, then by its cookie, then by its weight, of which only all and none fit."""
    yield f"set $chosen {one.upstream};"
    if one.canary is None:
        return
    own, upstream = one.canary
    get = {name.removeprefix(PREFIX): value for name, value in own.items()}
    if get.get("canary-weight") == get.get("canary-weight-total", "100"):
        yield f"set $chosen {upstream};"
    cookie = get.get("canary-by-cookie")
    if cookie:
        yield f'if ($cookie_{cookie} = "always") {{ set $chosen {upstream}; }}'
        yield f'if ($cookie_{cookie} = "never") {{ set $chosen {one.upstream}; }}'
    header = "$http_" + get.get("canary-by-header", "").replace("-", "_").lower()
    if get.get("canary-by-header-value"):
        yield f'if ({header} = "{get["canary-by-header-value"]}") {{ set $chosen {upstream}; }}'
    elif get.get("canary-by-header-pattern"):
        yield f'if ({header} ~ "{get["canary-by-header-pattern"]}") {{ set $chosen {upstream}; }}'
    elif header != "$http_":
        yield f'if ({header} = "always") {{ set $chosen {upstream}; }}'
        yield f'if ({header} = "never") {{ set $chosen {one.upstream}; }}'


# -- the process --------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def running(binary: str, text: str, folder: pathlib.Path, port: int, names: Sequence[str]) -> AsyncIterator[None]:
    """An nginx with this configuration and a certificate for these names."""
    certificate, key = ROOT.issue(*names)
    (folder / "tls.crt").write_text(certificate)
    (folder / "tls.key").write_text(key)
    (folder / "nginx.conf").write_text(text)
    process = await asyncio.create_subprocess_exec(
        binary, "-p", str(folder), "-c", str(folder / "nginx.conf"), "-e", str(folder / "nginx.log")
    )
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.close()
                break
            assert process.returncode is None, (folder / "nginx.log").read_text()
            await asyncio.sleep(0.05)
        yield
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
