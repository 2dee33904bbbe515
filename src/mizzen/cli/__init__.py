"""The command line: istioctl's words where both have them, and Mizzen's own.

    app ─> groups (lazy table of commands, aliases) ─> one module a command ─> render ─> stdout
            └─ flags (Go's spelling of flags)              └─ targets ─> the proxies and control plane of a local mesh

A command module parses its options, asks a lower package for values and renders them; it holds no mesh logic. Heavy
imports (protobuf, grpc, cryptography) happen inside the command functions, so `mizzen --help` stays instant. Answers
go to stdout, everything else to stderr; errors become one line and an exit code in `groups`, nowhere else.
"""
