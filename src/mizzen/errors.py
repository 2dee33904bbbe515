"""The exceptions that Mizzen raises on purpose.

    MizzenError
    ├── DecodeError      bytes or values that are not what they claim to be
    ├── SourceError      a source of objects cannot be read
    ├── SessionError     an xDS stream broke the protocol or is not who it says
    ├── AuthorityError   a certificate or token was refused
    ├── AgentError       Envoy or its agent cannot be run
    ├── LocalError       the local mesh cannot be built on this machine
    └── UsageError       the command line makes no sense

What a user wrote wrongly in one object is never an exception: it is a `Problem` (see `mizzen.api.problems`).
"""


class MizzenError(Exception):
    """Base of all expected failures; its text is one line fit for a terminal."""

    exit_code = 1


class DecodeError(MizzenError):
    """Input that does not decode; `path` is the field path within it, empty for the whole."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.message = message
        self.path = path


class SourceError(MizzenError):
    """A source (directory, file, API server) cannot be read at all."""


class SessionError(MizzenError):
    """A peer on an xDS stream is refused; the stream is closed."""


class AuthorityError(MizzenError):
    """A certificate request, certificate or token was refused."""


class AgentError(MizzenError):
    """Envoy or the agent around it cannot be started or has failed."""


class LocalError(MizzenError):
    """The local mesh cannot be built here; the text names the remedy."""


class UsageError(MizzenError):
    """The command line makes no sense (exit code 64, istioctl's for a command line that does not parse)."""

    exit_code = 64
