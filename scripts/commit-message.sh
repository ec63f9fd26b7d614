#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Check that a commit's subject is `area: imperative summary`, at most 72 characters long.
#
#   scripts/commit-message.sh FILE        check the message in that file, as git calls its hook commit-msg
#   scripts/commit-message.sh --install   install it as that hook of this repository
#
# The imperative is checked as far as possible: no article first, and no verb that ends in -ed, -ing or -s.
set -euo pipefail

if [ "${1:-}" = --install ]; then
    hook=$(git rev-parse --git-path hooks)/commit-msg
    mkdir -p "$(dirname "$hook")"
    # the working tree of an older commit has no such script
    printf '#!/bin/sh\n[ ! -x scripts/commit-message.sh ] || exec scripts/commit-message.sh "$1"\n' > "$hook"
    chmod +x "$hook"
    echo "$hook calls scripts/commit-message.sh."
    exit
fi

subject=$(sed -n '/^#/d;/./{p;q}' "$1")
case $subject in Merge\ * | Revert\ * | fixup!\ * | squash!\ * | amend!\ *) exit 0 ;; esac

wrong() {
    printf '%s\n    %s\n' "$1" "$subject" >&2
    exit 1
}

export LC_ALL=C.UTF-8
[ ${#subject} -le 72 ] || wrong "the subject has ${#subject} characters, expected 72 at most:"
[[ $subject =~ ^[^:]+:\ (.+)$ ]] || wrong "expected 'area: imperative summary':"
read -r first _ <<< "${BASH_REMATCH[1]}"
case $first in
embed | feed | need | seed | speed | bring | string) ;;
access | address | bypass | compress | cross | discuss | express | focus | guess | miss | pass | process | suppress) ;;
[Aa] | [Aa]n | [Tt]he | *ed | *ing | *s) wrong "'$first' is no imperative, such as 'add' or 'rename':" ;;
esac
