"""`mizzen completion`: what a shell must run to complete this program's command lines.

In: the name of a shell. Out: its script. The scripts call this program back with the words so far; click answers for
bash, zsh and fish, `PowerShell` below for PowerShell, and `complete_for_kubectl` for kubectl, which asks a program
named `kubectl_complete-mizzen` when it completes `kubectl mizzen …`.
"""

import os
import sys
from collections.abc import Sequence

import click
from click import shell_completion
from click.shell_completion import CompletionItem, ShellComplete

from mizzen.cli.flags import Command

SHELLS = ("bash", "zsh", "fish", "powershell")
PROGRAM = "mizzen"
VARIABLE = "_MIZZEN_COMPLETE"

_NO_FILES = ":4"
"""What kubectl takes as "offer no file names"."""

_SCRIPT = """\
Register-ArgumentCompleter -Native -CommandName '%(prog_name)s' -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $env:%(complete_var)s = 'powershell_complete'
    $env:COMP_WORDS = $commandAst.ToString()
    $env:COMP_INCOMPLETE = $wordToComplete
    try {
        & '%(prog_name)s' | ForEach-Object {
            $value, $help = $_ -split "`t", 2
            if (-not $help) { $help = $value }
            [System.Management.Automation.CompletionResult]::new($value, $value, 'ParameterValue', $help)
        }
    } finally {
        Remove-Item Env:%(complete_var)s, Env:COMP_WORDS, Env:COMP_INCOMPLETE
    }
}
"""


@shell_completion.add_completion_class
class PowerShell(ShellComplete):
    """Completion in PowerShell."""

    name = "powershell"
    source_template = _SCRIPT

    def get_completion_args(self) -> tuple[list[str], str]:
        """The whole words so far, and the one that is being typed."""
        words = shell_completion.split_arg_string(os.environ.get("COMP_WORDS", ""))[1:]
        incomplete = os.environ.get("COMP_INCOMPLETE", "")
        if incomplete and words and words[-1] == incomplete:
            words.pop()
        return words, incomplete

    def format_completion(self, item: CompletionItem) -> str:
        """Value and help, apart by a tab."""
        return f"{item.value}\t{item.help}" if item.help else str(item.value)


@click.command("completion", cls=Command)
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes this program's command lines.

    For bash: `source <(mizzen completion bash)`, in ~/.bashrc to have it always.
    """
    found = shell_completion.get_completion_class(shell)
    assert found is not None
    click.echo(found(ctx.find_root().command, {}, PROGRAM, VARIABLE).source(), nl=False)


def complete_for_kubectl(arguments: Sequence[str] | None = None) -> None:
    """Print what may stand where the last argument is, as kubectl takes it."""
    from mizzen.cli.app import main

    *before, incomplete = (list(arguments) if arguments is not None else sys.argv[1:]) or [""]
    items = PowerShell(main, {}, PROGRAM, VARIABLE).get_completions(before, incomplete)
    for item in items:
        click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(_NO_FILES)
