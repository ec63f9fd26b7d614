#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Are the words that docs/reference/glossary.md calls SDLF's own still in the tree, where it says that they are, and its former ones
# in no file of calculators/?
#
#   glossary.sh FOLDER      the project's folder
set -euo pipefail
cd "$1"
page=docs/reference/glossary.md
failed=0
words=0

while IFS='|' read -r _ left _ where; do
    folders=(framework calculators layers apps)
    if [[ $where =~ \`([a-z0-9_/]+)\` ]]; then folders=("${BASH_REMATCH[1]}"); fi
    while read -r word; do
        words=$((words + 1))
        grep -rqwE -- "$word|[a-z0-9_]*_$word|$word(_[a-z0-9_]*|s)" "${folders[@]}" || [ -n "$(find "${folders[@]}" -name "*$word*")" ] ||
            { echo "$page: there is no $word in ${folders[*]}" && failed=1; }
    done < <(grep -oE '`[a-z0-9_]+`' <<< "$left" | tr -d '`')
done < <(sed -n '/^## Words of SDLF/,/^## Former words/p' "$page" | grep '^|' | grep -vE '^\| word |^\|---')

former=0
while read -r word; do
    former=$((former + 1))
    if grep -rnwiE -- "$word|[a-z0-9_]*_$word|${word}_[a-z0-9_]*|${word}s" calculators; then
        echo "$page: '$word' is a former word, and it is in calculators/" && failed=1
    fi
    found=$(find calculators -name "*$word*")
    [ -z "$found" ] || { echo "$page: '$word' is a former word: $found" && failed=1; }
done < <(sed -n '/^## Former words/,$p' "$page" | grep '^|' | cut -d'|' -f2 | grep -oE '`[^`]+`' | tr -d '`')

[ "$words" -gt 15 ] && [ "$former" -gt 10 ] || { echo "only $words words and $former former ones were found: this script reads the page wrongly" && exit 1; }
[ "$failed" -eq 0 ] || exit 1
echo "$words words are where the glossary says, and none of $former former ones is left."
