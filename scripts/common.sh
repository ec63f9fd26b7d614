# Shared by the scripts of this folder: where the project is, and how a script says what it does.
# shellcheck shell=bash

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# A headline.
step() { printf '\n== %s\n' "$*"; }

# Show a command, then run it.
run() {
    printf '$'
    printf ' %q' "$@"
    printf '\n'
    "$@"
}

# How many processors this process may use.
processors() { nproc 2> /dev/null || echo 2; }
