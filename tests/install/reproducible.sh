#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Does a build of these sources in another folder, later and without ccache, give the same packages, bit for bit?
#
#   reproducible.sh FOLDER [CMAKE_OPTION...]      the packages that scripts/package.sh made here, with these options
set -euo pipefail
first=$(realpath "$1")
shift
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 1700000000)}
export SOURCE_DATE_EPOCH CCACHE_DISABLE=1

mkdir "$folder/another-place"
git ls-files -z --cached --others --exclude-standard | while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done |
    xargs -0 cp --parents -P -t "$folder/another-place"
(cd "$folder/another-place" && scripts/package.sh "$@") > "$folder/log" 2>&1 || { tail -n 30 "$folder/log" && exit 1; }
second=$folder/another-place/build/package/packages

# Where two packages differ: the files in them that do.
explain() {
    local side
    for side in first second; do
        mkdir -p "$folder/$side"
        case $1 in
        *.deb) dpkg-deb -R "${!side}/$1" "$folder/$side" ;;
        *.tar.gz) tar -xzf "${!side}/$1" -C "$folder/$side" ;;
        esac
    done
    diff -rq "$folder/first" "$folder/second" || true
    rm -rf "$folder/first" "$folder/second"
}

failed=0
[ "$(ls "$first")" = "$(ls "$second")" ] || { printf 'these files were made:\n%s\nand in the other folder:\n%s\n' "$(ls "$first")" "$(ls "$second")" && exit 1; }
for path in "$first"/*; do
    name=$(basename "$path")
    cmp "$path" "$second/$name" && continue
    failed=$((failed + 1))
    explain "$name"
done
[ "$failed" -eq 0 ] || { echo "$failed of the packages differ" && exit 1; }
echo "Two builds in two folders: the same bytes in $(ls "$first" | wc -l) files."
