#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Are the tests that docs/guides/reliability.md names there, and do they run? Of each file that a line links to, and of each case that a row of
# a table names: a function of that name which the test runs.
#
#   promises.sh FOLDER      the project's folder
set -euo pipefail
cd "$1"
page=docs/guides/reliability.md
failed=0
files=0
cases=0

wrong() { echo "$page: $1" && failed=1; }

# a test runs where it lies, and says so of its cases
while read -r file; do
    files=$((files + 1))
    [ -e "$file" ] || { wrong "there is no $file" && continue; }
    case $file in
    tests/*.c) grep -q 'RUN(' "$file" || wrong "$file runs no case" ;;
    scripts/*) [ -x "$file" ] || wrong "$file is no program" ;;
    esac
done < <(grep -oE '\.\./\.\./[a-zA-Z0-9_./-]+' "$page" | sed 's,^\.\./\.\./,,' | sort -u)

while IFS='|' read -r _ _ _ tests; do
    while read -r key names; do
        file=$(sed -n "s,^\[$key\]: \.\./\.\./,,p" "$page")
        [ -n "$file" ] || { wrong "[$key] stands for no file" && continue; }
        for name in $(tr -c 'a-z0-9_\n' ' ' <<< "$names"); do
            cases=$((cases + 1))
            grep -qE "RUN\($name\)" "$file" || wrong "$file runs no $name"
        done
    done < <(grep -oE '\[[a-z_]+\][^[|]*' <<< "$tests" | sed -E 's/\[([a-z_]+)\]/\1 /')
done < <(grep -E '^\|.*\[[a-z_]+\]' "$page")

[ "$files" -ge 40 ] && [ "$cases" -ge 15 ] || wrong "only $files files and $cases cases were found: this script reads the page wrongly"
exit "$failed"
