#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# follow.sh C_COMPILER PAGE...: do what pages of docs/ tell their reader to do, one after the other, in a copy of the project.
#
# In a page, a fenced block whose first line is
#   ```LANGUAGE PATH     becomes the file PATH
#   ```diff              is applied to the tree, where it must fit
#   ```sh                is run, from the project's folder, after all of those; each must succeed
# Other blocks are only read.
#
# "It takes 2 new files, ... in 3 others" is compared with how many files the page, and those after it without such words, make and change.
#
# Where ccache is found, the copy is compiled as other builds are, so that most of it has been compiled before; else with few optimisations.
set -euo pipefail

compiler=$1
pages=()
for page in "${@:2}"; do pages+=("$(realpath "$page")"); done
source=$(cd "$(dirname "$0")/../.." && pwd)
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT

cd "$source"
cp -a --parents CMakeLists.txt CMakePresets.json LICENSE cmake framework layers calculators communicators datasets graphs apps lab tests docs \
    python/sdlf python/tools "$copy"
cd "$copy"
settings='"SDLF_CUDA": "OFF", "SDLF_WERROR": "ON"'
if command -v ccache > /dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1
else
    settings+=', "CMAKE_C_FLAGS_RELEASE": "-O1 -DNDEBUG"'
fi
sed -i "s/\"SDLF_CUDA\": \"OFF\"/$settings/" CMakePresets.json
grep -q SDLF_WERROR CMakePresets.json

# numbers PAGE: of new and changed files, as the page says them; nothing where it does not.
numbers() {
    grep -oE '^It takes ([0-9]+|no) new files?|\bin [0-9]+ others?\b' "$1" | sed 's/\bno\b/0/' | grep -oE '[0-9]+' | xargs
}

first=${pages[0]} said="0 0" made=0 changed=0
compare() {
    [ "$said" = "$made $changed" ] || { echo "$1 says of new and changed files '$said', and has '$made $changed'" && exit 1; }
}

for page in "${pages[@]}"; do
    rm -f changes.patch commands.sh
    awk '
        /^```/ && !inside {
            inside = 1
            language = substr($1, 4)
            path = NF > 1 ? $2 : language == "diff" ? "changes.patch" : language == "sh" ? "commands.sh" : ""
            if (NF > 1 && system("mkdir -p \"$(dirname \"" path "\")\"") != 0) exit 1
            next
        }
        /^```$/ { inside = 0; next }
        inside && path != "" { print > path }
    ' "$page"
    if [ -n "$(numbers "$page")" ]; then
        compare "$first"
        said=$(numbers "$page") made=0 changed=0 first=$page
    fi
    made=$((made + $(grep -cE '^```(c|cmake) ' "$page" || true)))
    if [ -f changes.patch ]; then
        changed=$((changed + $(grep -c '^+++ ' changes.patch)))
        patch --strip 1 --fuzz 2 --no-backup-if-mismatch < changes.patch
    fi
    [ -f commands.sh ] || continue
    sed 's/^/$ /' commands.sh
    CC=$compiler bash -euo pipefail commands.sh
done
compare "$first"
