#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Where do programs and shared libraries look for libraries? Each entry of their RPATH and RUNPATH must be $ORIGIN, the folder
# of the file itself, or a folder that is there; and nobody but its owner and group may write to it. An empty entry is the
# working directory, whose libraries would then be run.
#
#   search_paths.sh FOLDER      every ELF file below it
set -euo pipefail
folder=$(realpath "$1")
files=0
failed=0
declare -A seen # FOLDER:PATHS, since most tests have the same

wrong() {
    printf '%s: its search path %s: %s\n' "$1" "$2" "$3"
    failed=$((failed + 1))
}

# May others put something where this absolute path is? In a folder like /tmp they may add files, and not replace any.
others_may_write() {
    local path=$1
    [ -z "$(find "$path" -maxdepth 0 -perm -0002)" ] || return 0
    while [ "$path" != / ]; do
        path=$(dirname "$path")
        [ -z "$(find "$path" -maxdepth 0 -perm -0002 ! -perm -1000)" ] || return 0
    done
    return 1
}

check() {
    local file=$1 paths=$2 entry path key
    key=$(dirname "$file"):$paths
    [ -z "${seen[$key]:-}" ] || return 0
    seen[$key]=yes
    while IFS= read -r entry; do
        case $entry in
        '$ORIGIN' | '$ORIGIN'/*) path=$(realpath -m "$(dirname "$file")${entry#'$ORIGIN'}") ;;
        /*) path=$(realpath -m "$entry") ;;
        *) wrong "$file" "[$paths]" "the entry '$entry' depends on the working directory" && continue ;;
        esac
        if [ ! -d "$path" ]; then
            wrong "$file" "[$paths]" "there is no folder $path"
        elif others_may_write "$path"; then
            wrong "$file" "[$paths]" "others may write to $path"
        fi
    done <<< "${paths//:/$'\n'}"
}

while IFS= read -r -d '' file; do
    dynamic=$(readelf -d "$file" 2> /dev/null) || continue
    case $dynamic in *NEEDED*) ;; *) continue ;; esac
    files=$((files + 1))
    while IFS= read -r paths; do check "$file" "$paths"; done < <(sed -n 's/.*R[UN]*PATH) .*\[\(.*\)\]$/\1/p' <<< "$dynamic")
done < <(find "$folder" -type f \( -perm -u+x -o -name '*.so*' \) -print0)

if [ "$files" -eq 0 ]; then
    echo "there is no program and no shared library below $folder"
    exit 1
fi
[ "$failed" -eq 0 ] || exit 1
echo "$files programs and libraries look for others in safe places."
