#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Does docs/guides/from-pytorch.md name what there is? In the columns of SDLF, words in backquotes are layers or options of
# docs/reference/layers.md, functions and types of the public headers (sdlf_...), members of the options that they are said to be of, or
# commands, which check.sh looks at.
#
#   dictionary.sh FOLDER      the project's folder
set -euo pipefail
cd "$1"
page=docs/guides/from-pytorch.md
headers=$(cat framework/include/sdlf/*.h framework/include/sdlf/*/*.h)
layers=$(grep -oE '^### [a-z0-9_]+|^\| `[a-z_]+`' docs/reference/layers.md | sed 's/^### //; s/^| //; s/`//g')
failed=0
names=0

while IFS='|' read -r _ pytorch keras rest; do
    case $pytorch in ' PyTorch '* | '---'*) continue ;; esac
    owner=$(grep -oE 'sdlf_[a-z_]+_options' <<< "$rest" | head -1 || true)
    while read -r word; do
        names=$((names + 1))
        case $word in
        'sdlf '*) continue ;;
        sdlf_*)
            grep -qE "\b${word%%(*}\b" <<< "$headers" && continue
            ;;
        *)
            if [ -n "$owner" ]; then
                sed -n "/^typedef struct $owner {/,/^}/p" framework/include/sdlf/*.h framework/include/sdlf/*/*.h | grep -E "\b$word;|\b$word,|^ *$word;" > /dev/null && continue
            else
                grep -qxF "$word" <<< "$layers" && continue
            fi
            ;;
        esac
        echo "$page: there is no $word" && failed=1
    done < <(grep -oE '`[^`]+`' <<< "$rest" | tr -d '`')
done < <(grep '^|' "$page")

[ "$names" -gt 80 ] || { echo "only $names names were found: this script reads the page wrongly" && exit 1; }
[ "$failed" -eq 0 ] || exit 1
echo "$names names of SDLF are there."
