"""The agent's program takes what injected containers run, by the words of their arguments."""

import cli_runs
from injected_pods import build_pod, container, inject


def test_the_init_container_runs_a_command_of_the_agent() -> None:
    init = container(inject(build_pod()), "istio-init")

    result = cli_runs.run("agent", *init["args"], "--dry-run")

    assert result.exit_code == 0, result.output
    assert "-A ISTIO_OUTPUT -m owner --uid-owner 1337 -j RETURN" in result.stdout


def test_a_role_that_there_is_not_is_refused() -> None:
    result = cli_runs.run("agent", "proxy", "waypoint")

    assert (result.exit_code, "waypoint" in result.stderr) == (64, True)
