#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The hook for commit messages takes good subjects and refuses others.
#
#   commit-message.sh FOLDER      the project's folder
set -euo pipefail
script=$1/scripts/commit-message.sh
message=$(mktemp)
trap 'rm -f "$message"' EXIT

# expect CODE SUBJECT [BODY]
expect() {
    local code=0
    printf '\n%s\n\nThe body may be added, in any words and with lines that are as long as they need to be, or longer.\n%s\n# a comment\n' \
        "$2" "${3:-}" > "$message"
    "$script" "$message" 2> /dev/null || code=$?
    [ "$code" -eq "$1" ] || { echo "expected status $1, found $code: $2" && exit 1; }
}

expect 0 'layers: share the gradient of tied maxima'
expect 0 'cuda, plan: feed batches from the device'
expect 0 "Merge branch 'main'"
expect 0 'fixup! layers: share the gradient of tied maxima'
expect 0 "area: add $(printf '%062d' 0)"
expect 1 "area: add $(printf '%063d' 0)"
expect 0 'layers: add tied maxima' "$(yes 'a line of a long message, more of them than a pipe holds' | sed 20000q)"
for verb in seed guess focus access cross suppress miss; do expect 0 "area: $verb it"; done
expect 1 'share the gradient of tied maxima'
expect 1 'layers: shared the gradient of tied maxima'
expect 1 'layers: sharing the gradient of tied maxima'
expect 1 'layers: shares the gradient of tied maxima'
expect 1 'layers: the gradient of tied maxima is shared'

# The hook is installed, refuses, and lets a working tree without the script commit.
folder=$(mktemp -d)
trap 'rm -rf "$message" "$folder"' EXIT
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.invalid GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.invalid GIT_CONFIG_GLOBAL=/dev/null
unset GIT_DIR GIT_INDEX_FILE GIT_WORK_TREE
git init -q "$folder"
cd "$folder"
"$script" --install > /dev/null
git commit -q --allow-empty -m 'No script yet.'
mkdir scripts
cp "$script" scripts
git commit -q --allow-empty -m 'area: commit by the rules'
! git commit -q --allow-empty -m 'Committed against them.' 2> /dev/null || { echo "the hook refuses nothing" && exit 1; }
echo "Subjects are told apart."
