# SPDX-License-Identifier: MIT
# Shared by the scripts of this folder: the project's path, and functions for messages. shellcheck
# shell=bash

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

# The number of CPU cores that this process may use.
processors() { nproc 2> /dev/null || echo 2; }

# True if there is an NVIDIA GPU that may be used.
gpu_is_there() {
    if [ -n "${CUDA_VISIBLE_DEVICES+set}" ] && [ -z "$CUDA_VISIBLE_DEVICES" ]; then return 1; fi
    command -v nvidia-smi > /dev/null && nvidia-smi -L 2> /dev/null | grep -q '^GPU '
}
