# SPDX-License-Identifier: MIT
"""What the scripts share that time SDLF beside another program: arguments, and how what goes wrong is said."""
import argparse
import importlib
import json
import os
import subprocess
import sys


def parser(description):
    """A parser that shows the script's own description as it stands, defaults behind each argument, and has --sdlf."""
    class Formatter(argparse.RawDescriptionHelpFormatter, argparse.ArgumentDefaultsHelpFormatter):
        pass

    made = argparse.ArgumentParser(description=description, formatter_class=Formatter)
    made.add_argument("--sdlf", metavar="PROGRAM", default="build/sdlf", help="the program that is timed")
    return made


def texts(text):
    """`a,b` as a list, for type=."""
    found = text.split(",")
    if not all(found):
        raise argparse.ArgumentTypeError(f"expected words with commas in between, found '{text}'")
    return found


def one_of(*known):
    """Words of a list, for type=."""
    def read(text):
        for word in texts(text):
            if word not in known:
                raise argparse.ArgumentTypeError(f"expected some of {','.join(known)}, found '{word}'")
        return texts(text)

    return read


def count(text):
    """A whole number from 1 on, for type=."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1 on, found '{text}'")
    return int(text)


def counts(text):
    """`1,32` as a list of whole numbers from 1 on, for type=."""
    return [count(word) for word in text.split(",")]


def seconds(text):
    """A time above 0, for type=."""
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number of seconds above 0, found '{text}'")
    return value


def need(module):
    """The module, or one line that says what is missing."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        sys.exit(f"{missing}; this needs the Python package '{module}'")


class Failed(Exception):
    """A command that ended with an error: its message."""


def attempt(command, **options):
    """A command of `sdlf` that has ended, well or not. Ends the script where the program is not there."""
    if not os.access(command[0], os.X_OK):
        sys.exit(f"{command[0]}: there is no such program; build it, or name it with --sdlf")
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def run(command, **options):
    """What a command prints. Raises Failed with its message."""
    done = attempt(command, **options)
    if done.returncode != 0:
        raise Failed(done.stderr.strip() or f"exit status {done.returncode}: {' '.join(command)}")
    return done.stdout


def report(command, **options):
    """The JSON of a command, which must have succeeded, or the script ends with its message."""
    try:
        return json.loads(run(command, **options))
    except Failed as failed:
        sys.exit(str(failed))
