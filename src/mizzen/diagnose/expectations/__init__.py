"""Unit tests of routes and policies: requests in a table, and what each of them should meet.

    plain YAML data ─> tables (Suite, Case, Expect) ─> running ─> trace ─> seen (Seen) ─> checks ─> Result
                                                          │                                            │
                                                          └─> coverage <─ objects of the world         └─> report, junit
    text of a file, Seen ─> recording ─> the same text with its expectations rewritten

Everything here is pure: the command reads the files and writes what comes out. `seen` says what a verdict of
`mizzen.diagnose.trace` comes to in the words of an expectation; recording and checking share it, so that what was
recorded holds until something changes.
"""
