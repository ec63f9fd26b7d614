#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Does the comment at the top of every public header say what holds of threads, ownership and errors?
#
#   headers.sh FOLDER      the project's folder
set -euo pipefail
cd "$1"
failed=0
headers=(framework/include/sdlf/*.h framework/include/sdlf/*/*.h)
for header in "${headers[@]}"; do
    top=$(sed '1d; /\*\//q' "$header")
    for word in Threads Ownership Errors; do
        grep -q "^ \* $word: ." <<< "$top" || { echo "$header: its first comment says nothing of '$word:'" && failed=1; }
    done
done
[ "$failed" -eq 0 ] || exit 1
echo "${#headers[@]} headers say what holds of threads, ownership and errors."
