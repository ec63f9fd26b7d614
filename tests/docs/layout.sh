#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Do pages lie where their kind does, and are they as short as that kind is to be?
#
#   layout.sh FOLDER      the project's folder
#
# README.md has fewer than 150 lines; it, CONTRIBUTING.md and SECURITY.md have at most 120 columns but in tables and code. Pages lie in docs/guides, docs/reference and docs/notebook; docs/README.md lists them. A guide has
# at most 200 lines of at most 120 columns; tables, and output of programs, which is indented by four, may be wider. The title of a notebook page
# begins with a date.
set -euo pipefail
cd "$1"
export LC_ALL=C.UTF-8
failed=0

wrong() {
    printf '%s\n' "$1"
    failed=$((failed + 1))
}

lines=$(wc -l < README.md)
[ "$lines" -lt 150 ] || wrong "README.md has $lines lines, expected fewer than 150"
for page in README.md CONTRIBUTING.md SECURITY.md; do
    while IFS=: read -r number line; do
        wrong "$page:$number: ${#line} columns, expected 120 at most"
    done < <(grep -nE '^.{121}' "$page" | grep -vE '^[0-9]+:(    |\|)' || true)
done

while read -r page; do
    case ${page#docs/} in
    README.md | guides/*.md | reference/*.md | notebook/*.md) ;;
    *) wrong "$page lies outside of docs/guides, docs/reference and docs/notebook" ;;
    esac
done < <(find docs -name '*.md' | sort)

for page in docs/guides/*.md; do
    lines=$(wc -l < "$page")
    [ "$lines" -le 200 ] || wrong "$page has $lines lines, expected 200 at most"
    while IFS=: read -r number line; do
        wrong "$page:$number: ${#line} columns, expected 120 at most"
    done < <(grep -nE '^.{121}' "$page" | grep -vE '^[0-9]+:(    |\||!|<!--)' || true)
done

for page in docs/notebook/*.md; do
    head -1 "$page" | grep -qE '^# 20[0-9]{2}-[01][0-9]-[0-3][0-9]: ' || wrong "$page: its title begins with no date, as in '# 2026-11-24: ...'"
done

[ "$failed" -eq 0 ] || { echo "$failed wrong" && exit 1; }
echo "$(find docs -name '*.md' | wc -l) pages lie where they belong."
