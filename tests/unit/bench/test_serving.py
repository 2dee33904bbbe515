"""What a control plane and its descendants use, read while threads and processes come and go."""

import subprocess
import sys

from bench import serving

_RESTLESS = """
import subprocess, sys, threading

def come_and_go():
    while True:
        thread = threading.Thread(target=int)
        thread.start()
        thread.join()

for _ in range(3):
    threading.Thread(target=come_and_go, daemon=True).start()
print(flush=True)
while True:
    subprocess.run(["/bin/true"])
"""


def test_what_ends_while_it_is_measured_is_passed_over() -> None:
    with subprocess.Popen([sys.executable, "-c", _RESTLESS], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        try:
            assert all(serving.measure_usage(process.pid).resident_kb > 0 for _ in range(100))
        finally:
            process.kill()
