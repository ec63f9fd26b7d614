#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The hook for commit messages takes good subjects and refuses others.
#
#   commit-message.sh FOLDER      the project's folder
set -euo pipefail
script=$1/scripts/commit-message.sh
message=$(mktemp)
trap 'rm -f "$message"' EXIT

# expect CODE SUBJECT
expect() {
    local code=0
    printf '\n%s\n\nThe body may be added, in any words and with lines that are as long as they need to be, or longer.\n# a comment\n' "$2" > "$message"
    "$script" "$message" 2> /dev/null || code=$?
    [ "$code" -eq "$1" ] || { echo "expected status $1, found $code: $2" && exit 1; }
}

expect 0 'layers: share the gradient of tied maxima'
expect 0 'cuda, plan: feed batches from the device'
expect 0 "Merge branch 'main'"
expect 0 'fixup! layers: share the gradient of tied maxima'
expect 0 "area: add $(printf '%062d' 0)"
expect 1 "area: add $(printf '%063d' 0)"
expect 1 'share the gradient of tied maxima'
expect 1 'layers: shared the gradient of tied maxima'
expect 1 'layers: sharing the gradient of tied maxima'
expect 1 'layers: shares the gradient of tied maxima'
expect 1 'layers: the gradient of tied maxima is shared'
echo "Subjects are told apart."
