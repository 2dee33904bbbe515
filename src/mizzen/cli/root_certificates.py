"""`mizzen proxy-config rootca-compare`: whether two proxies trust a common root; without one neither trusts the other.

In: two pods of the local mesh, or files with their dumps (`--file`). Out: one sentence; exit code 1 if they do not.
"""

import click

from mizzen.cli import options, targets
from mizzen.cli.flags import Command
from mizzen.errors import MizzenError

SECRETS = "config_dump?mask=dynamic_active_secrets,dynamic_warming_secrets"
_PAIR = 2


@click.command("rootca-compare", cls=Command)
@click.argument("pods", metavar="POD[.NAMESPACE] POD[.NAMESPACE]", nargs=-1, shell_complete=options.complete_pods)
@click.option("-f", "--file", "files", multiple=True, metavar="FILE", help="Envoy's dump, instead of a pod.")
@options.namespace_option
@options.mesh_option
def rootca_compare(pods: tuple[str, ...], files: tuple[str, ...], namespace: str, mesh: str) -> None:
    """Compare the root certificates of two proxies."""
    from mizzen.diagnose import dump, roots

    if len(pods) + len(files) != _PAIR:
        raise MizzenError("rootca-compare requires 2 pods as an argument")
    dumps = {file: targets.read_file(file) for file in files}
    for pod in pods:
        proxy = targets.find_proxy(pod, namespace=namespace, mesh=mesh)
        dumps[proxy.name] = proxy.get(SECRETS)
    found = [roots.find_roots(dump.parse_dump(text)) for text in dumps.values()]
    both = "Both " + " and ".join(f"[{name}]" for name in dumps)
    if not frozenset.intersection(*found):
        verdict = "non identical ROOTCA, theoretically the connectivity between them is unavailable"
        raise MizzenError(f"{both} have the {verdict}")
    click.echo(f"{both} have the identical ROOTCA, theoretically the connectivity between them is available")
