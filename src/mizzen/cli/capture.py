"""`mizzen iptables`: prints, loads, checks or removes the capture rules of a pod, with istio-iptables' flags.

The flags are `mizzen.capture.arguments.OPTIONS`; here they become a click command. An injected init container runs
this. Exit code 126 means that the rules are there, or should be, and connections still go elsewhere.
"""

import os
import sys
from typing import Any

import click
import msgspec

from mizzen.capture import apply, arguments, host, probe
from mizzen.capture.arguments import Invocation, Option

EXIT_NOT_CAPTURED = 126


def iptables_(**given: str | None) -> int:
    """Set up the capture of a pod's traffic: print, load, check or remove the rules.

    Takes the flags of `istio-iptables`. With `--dry-run` the rules are printed and nothing is changed.
    """
    flags = {option.name: given[_parameter(option)] for option in arguments.OPTIONS}
    texts = {name: text for name, text in flags.items() if text is not None}
    invocation = arguments.read_options(texts, os.environ)
    if invocation.namespace is None:
        invocation = msgspec.structs.replace(invocation, config=host.complete(invocation.config))
    return run(invocation)


def run(invocation: Invocation) -> int:
    """Does what the flags ask; the exit code."""
    config = invocation.config
    if invocation.dry_run:
        native = invocation.native_nftables
        sys.stdout.write(apply.render_native_plan(config) if native else apply.render_plan(config))
        return 0
    if invocation.cleanup_only:
        click.echo(_clean(invocation), err=True)
        return 0
    if not invocation.skip_rule_apply:
        click.echo(_load(invocation), err=True)
    return _validate(invocation) if invocation.run_validation else 0


def _load(invocation: Invocation) -> str:
    if invocation.native_nftables:
        apply.apply_native(invocation.config, namespace=invocation.namespace)
        return "capture rules loaded"
    place = {"namespace": invocation.namespace, "variant": invocation.variant}
    outcome = apply.apply(invocation.config, force=invocation.force_apply, **place)
    return "capture rules loaded" if outcome.changed else "capture rules were loaded already"


def _clean(invocation: Invocation) -> str:
    if invocation.native_nftables:
        apply.clean_native(invocation.config, namespace=invocation.namespace)
        return "capture rules removed"
    outcome = apply.clean(invocation.config, namespace=invocation.namespace, variant=invocation.variant)
    return "capture rules removed" if outcome.changed else "no capture rules to remove"


def _validate(invocation: Invocation) -> int:
    try:
        probe.run_probe(invocation.config, port=invocation.probe_port, timeout=invocation.probe_timeout)
    except apply.CaptureError as error:
        click.echo(f"Error: {error}", err=True)
        return EXIT_NOT_CAPTURED
    click.echo("capture is in force", err=True)
    return 0


def _parameter(option: Option) -> str:
    return option.name.lstrip("-").replace("-", "_")


def _click_option(option: Option) -> click.Option:
    more: dict[str, Any] = {"is_flag": False, "flag_value": "true"} if option.switch else {}
    shown = f"{option.help} [{option.variable}]" if option.variable else option.help
    metavar = "true|false" if option.switch else "TEXT"
    return click.Option([*option.flags, _parameter(option)], default=None, help=shown, metavar=metavar, **more)


iptables = click.Command(
    "iptables",
    params=[_click_option(option) for option in arguments.OPTIONS],
    callback=iptables_,
    help=iptables_.__doc__,
)
