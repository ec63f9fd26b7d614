# SPDX-License-Identifier: MIT
"""Checks that are counted, for the tests of scripts."""
import subprocess
import sys

failures = 0


def check(what, holds, found=""):
    """Print whether it holds, and what was found where it does not."""
    global failures
    failures += not holds
    print(f"{'ok      ' if holds else 'FAILED  '} {what}{'' if holds else ': ' + str(found)}")


def run(script, *words):
    """The script's exit status, output and errors."""
    done = subprocess.run([sys.executable, script, *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def conclude():
    sys.exit(failures > 0)
