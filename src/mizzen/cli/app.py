"""The program `mizzen`: its table of commands and its root options.

In: a command line. Out: a command's answer and an exit code. A command is imported when it is called and no sooner;
the table holds its one line of help, so that `mizzen --help` imports none.
"""

import click

from mizzen.cli.groups import Entry, Invocation, Program

COMMANDS = {
    "up": Entry("mizzen.cli.up:up", "Run the manifests of a directory as a mesh on this machine."),
    "down": Entry("mizzen.cli.down:down", "Stop a local mesh and remove what it left."),
    "logs": Entry("mizzen.cli.logs:logs", "Print the logs of a pod of the local mesh."),
    "exec": Entry("mizzen.cli.exec:exec_", "Run a command inside a pod of the local mesh."),
    "compile": Entry("mizzen.cli.compile:compile_", "Print what a proxy would be told, offline from manifests."),
    "validate": Entry("mizzen.cli.validate:validate", "Hold manifests against the rules of admission.", ("v",)),
    "analyze": Entry("mizzen.cli.analyze:analyze", "Find what is wrong, doubtful or without effect in manifests."),
    "proxy-status": Entry(
        "mizzen.cli.proxy_status:proxy_status",
        "Show whether each proxy has what the control plane sent it.",
        ("ps",),
    ),
    "top": Entry("mizzen.cli.top:top", "Show what costs most: objects by the pushes that they cause."),
    "proxy-config": Entry(
        "mizzen.cli.proxy_config:proxy_config", "Show what one proxy's Envoy has really loaded.", ("pc",)
    ),
    "describe": Entry("mizzen.cli.describe:describe", "Tell what the mesh does with a pod or a Service.", ("des",)),
    "authz": Entry("mizzen.cli.authz:authz", "Show which AuthorizationPolicies a proxy enforces."),
    "remote-clusters": Entry(
        "mizzen.cli.remote_clusters:remote_clusters", "Show the other clusters that control planes read."
    ),
    "admin": Entry("mizzen.cli.admin:admin", "Look after the control plane: what it logs.", ("istiod",)),
    "trace": Entry("mizzen.cli.trace:trace", "Tell what a request will meet, link by link, and why."),
    "tls-check": Entry("mizzen.cli.tls_check:tls_check", "Tell whether clients and servers agree about TLS."),
    "test": Entry("mizzen.cli.test:test", "Hold routes and policies against tables of requests, for CI."),
    "diff": Entry("mizzen.cli.diff:diff", "Tell what a change does to proxies, requests and open connections."),
    "precheck": Entry("mizzen.cli.precheck:precheck", "Check whether it is safe to install or upgrade."),
    "bug-report": Entry(
        "mizzen.cli.bug_report:bug_report", "Collect logs, dumps and objects in one archive, secrets cut out."
    ),
    "inject": Entry("mizzen.cli.inject:inject", "Add the sidecar to the pods of manifests.", ("kube-inject",)),
    "install": Entry(
        "mizzen.cli.install:install", "Install a control plane in a cluster, or change one that is there.", ("apply",)
    ),
    "uninstall": Entry("mizzen.cli.uninstall:uninstall", "Remove a control plane from a cluster, or all of them."),
    "tag": Entry("mizzen.cli.tag:tag", "Name revisions of the control plane, for namespaces to follow the name."),
    "manifest": Entry("mizzen.cli.manifest:manifest", "Print manifests that the control plane would make."),
    "migrate": Entry("mizzen.cli.migrate:migrate", "Turn the configuration of other gateways into this mesh's."),
    "ca": Entry("mizzen.cli.ca:ca", "Make and inspect the mesh's certificates."),
    "discovery": Entry("mizzen.cli.discovery:discovery", "Run the control plane."),
    "agent": Entry("mizzen.cli.agent:agent", "Run the agent of one sidecar or gateway."),
    "iptables": Entry("mizzen.cli.capture:iptables", "Print or apply the capture rules of a pod.", hidden=True),
    "version": Entry("mizzen.cli.version:version", "Print the versions of client, control plane and proxies."),
    "dashboard": Entry(
        "mizzen.cli.dashboard:dashboard", "Open what a proxy or the control plane shows of itself.", ("dash", "d")
    ),
    "completion": Entry(
        "mizzen.cli.completion:completion", "Print the script that completes command lines in a shell."
    ),
    "help": Entry("mizzen.cli.help:help_", "Print the help of a command."),
    "experimental": Entry(
        "mizzen.cli.experimental:experimental", "Commands that istioctl keeps under x.", ("x", "exp")
    ),
}


@click.group(
    cls=Program,
    entries=COMMANDS,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option("-v", "--verbose", is_flag=True, help="After an error, print its causes too.")
@click.option("-n", "--namespace", default="", help="Namespace of names that have none.")
@click.pass_obj
def main(invocation: Invocation, verbose: bool, namespace: str) -> None:
    """An Istio-compatible service mesh: control plane, sidecars and diagnosis."""
    invocation.verbose = verbose
    invocation.namespace = namespace
