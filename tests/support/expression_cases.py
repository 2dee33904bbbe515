"""Regular expressions, each with whether Envoy takes it with the bounds that its bootstrap sets."""

LARGEST = 32768
"""Instructions of a program, as `re2.max_program_size.error_level` of a bootstrap says."""

EXPRESSIONS: dict[str, tuple[str, bool]] = {
    "plain": ("/a/.*", True),
    "alternatives": ("(?i)a|b{1,3}", True),
    "open group": ("/a(", False),
    "open set": ("[", False),
    "looks behind": ("(?<=a)b", False),
    "letters beyond ASCII": ("[а-я]+é", True),
    "letters by number": (r"\x{e9}", True),
    "letters by a larger number": (r"\x{263a}", False),
    "any letters": (r"[\p{L}\p{N}]{1,64}", True),
    "many letters": (r"\pL{500}", True),
    "too many repetitions": ("a{1001}", False),
    "largest program": ("a" * (LARGEST - 4), True),
    "too large a program": ("a" * (LARGEST - 3), False),
    "too large by repetition": ("a{1000}" * 33, False),
}
