"""`mizzen completion` and the plugin of kubectl: one program under several names, completed by every shell."""

import importlib.metadata
import os
import pathlib
import shutil
import subprocess
import sys

import cli_runs
import pytest

from mizzen.cli import completion

START = "from mizzen.cli.app import main; main()"


def run_as(name: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """The program as it is started under that name."""
    script = f"import sys; sys.argv[0] = {name!r}; {START}"
    command = (sys.executable, "-c", script, *arguments)
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environ}, check=False)


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_every_shell_has_its_script(shell: str) -> None:
    result = cli_runs.run("completion", shell)

    assert result.exit_code == 0
    assert completion.VARIABLE in result.stdout


def test_another_shell_is_refused() -> None:
    assert cli_runs.run("completion", "tcsh").exit_code == 64


def test_bash_completes_by_the_script() -> None:
    if shutil.which("bash") is None:
        pytest.fail("bash is missing")
    script = cli_runs.run("completion", "bash").stdout
    lines = (
        f'mizzen() {{ {sys.executable} -c \'import sys; sys.argv[0] = "mizzen"; {START}\' "$@"; }}',
        script.replace("env COMP_WORDS", "COMP_WORDS").replace("$1)", "mizzen)"),
        "COMP_WORDS=(mizzen proxy-c); COMP_CWORD=1; _mizzen_completion mizzen; echo ${COMPREPLY[@]}",
    )
    done = subprocess.run(["bash", "-c", "\n".join(lines)], capture_output=True, text=True, check=True)

    assert done.stdout == "proxy-config\n"


def test_powershell_gets_values_with_help() -> None:
    asked = {completion.VARIABLE: "powershell_complete", "COMP_WORDS": "mizzen pc clu", "COMP_INCOMPLETE": "clu"}

    assert run_as("mizzen", **asked).stdout == "cluster\tShow the clusters.\n"


def test_kubectl_finds_the_program_as_its_plugin() -> None:
    scripts = importlib.metadata.distribution("mizzen").entry_points.select(group="console_scripts")
    targets = {script.name: script.value for script in scripts}

    assert targets["kubectl-mizzen"] == targets["mizzen"]
    done = run_as("/usr/bin/kubectl-mizzen", "proxy-confg")
    assert done.returncode == 64
    assert done.stderr == (
        "Error: unknown command 'proxy-confg' for 'kubectl mizzen', did you mean 'proxy-config'?"
        " (see `kubectl mizzen --help`)\n"
    )


def test_kubectl_completes_the_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    completion.complete_for_kubectl(["proxy-config", "boot"])

    assert capsys.readouterr().out == "bootstrap\tShow what Envoy was started with.\n:4\n"


def test_pods_of_the_mesh_are_completed(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    pods = [cli_runs.pod(name, "shop") for name in ("cart-0", "cart-1", "front-0")]
    mesh = str(cli_runs.write_mesh(tmp_path / "shop", pods=pods))
    for command in (["pc", "cluster"], ["describe", "pod"], ["authz", "check"], ["exec"], ["logs"]):
        completion.complete_for_kubectl([*command, "--mesh", mesh, "cart"])

        assert capsys.readouterr().out == "cart-0.shop\ncart-1.shop\n:4\n"


def test_without_a_mesh_nothing_is_completed(tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]) -> None:
    completion.complete_for_kubectl(["pc", "cluster", "--mesh", f"{tmp_path}/none", "cart"])

    assert capsys.readouterr().out == ":4\n"
