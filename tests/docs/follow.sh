#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# follow.sh C_COMPILER PAGE...: do what pages of docs/ tell their reader to do, one after the other, in a copy of the project.
#
# In the pages, a fenced block whose first line is
#   ```LANGUAGE PATH     becomes the file PATH
#   ```diff              is applied to the tree, where it must fit
#   ```sh                is run, from the project's folder, after all of those; each must succeed
# Other blocks are only read.
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
cp -a --parents CMakeLists.txt CMakePresets.json LICENSE cmake framework layers calculators communicators datasets graphs apps lab tests "$copy"
cd "$copy"

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
' "${pages[@]}"

# "It takes 2 new files, ... in 6 others": so many sources does the page make, and so many does it change.
said=$(grep -oE '^It takes [0-9]+ new files|\bin [0-9]+ others' "${pages[0]}" | grep -oE '[0-9]+' | xargs)
found="$(cat "${pages[@]}" | grep -cE '^```(c|cmake) ') $(grep -c '^+++ ' changes.patch)"
[ "$said" = "$found" ] || { echo "${pages[0]} says of new and changed files '$said', and has '$found'" && exit 1; }

if [ -f changes.patch ]; then
    patch --strip 1 --fuzz 2 --no-backup-if-mismatch < changes.patch
fi
settings='"SDLF_CUDA": "OFF", "SDLF_WERROR": "ON"'
if command -v ccache > /dev/null; then
    export CMAKE_C_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1
else
    settings+=', "CMAKE_C_FLAGS_RELEASE": "-O1 -DNDEBUG"'
fi
sed -i "s/\"SDLF_CUDA\": \"OFF\"/$settings/" CMakePresets.json
grep -q SDLF_WERROR CMakePresets.json
sed 's/^/$ /' commands.sh
CC=$compiler bash -euo pipefail commands.sh
