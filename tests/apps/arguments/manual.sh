#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Every manual page is set without a warning, and has every option of its command.
#
#   manual.sh SDLF FOLDER      the sdlf program, the folder with the pages
set -euo pipefail
command -v groff > /dev/null || { echo "skipped: there is no groff" && exit 77; }
pages=0
for page in "$2"/*.1*; do
    name=$(basename "${page%%.1*}")
    text=$(mktemp)
    case $page in *.gz) zcat "$page" ;; *) cat "$page" ;; esac > "$text"
    said=$(groff -man -Tutf8 -ww -z -rLL=300n "$text" 2>&1)
    [ -z "$said" ] || { echo "$name: $said" && exit 1; }
    shown=$(groff -man -Tascii -rLL=300n "$text" | sed 's/\x1b\[[0-9;]*m//g; s/.\x08//g')
    rm "$text"
    pages=$((pages + 1))
    [ "$name" != sdlf ] || continue
    read -ra words <<< "${name//-/ }"
    command=("$1" "${words[@]:1}")
    [ "$name" != sdlf-get-mnist ] || command=(sh "$(dirname "${BASH_SOURCE[0]}")/../../../scripts/get-mnist.sh")
    for heading in NAME SYNOPSIS DESCRIPTION OPTIONS FILES "EXIT STATUS"; do
        grep -q "^$heading" <<< "$shown" || { echo "$name has no $heading" && exit 1; }
    done
    while read -r option; do
        grep -qE -- "^ +(-., )?$option( |\$|\[)" <<< "$shown" || { echo "$name does not have $option" && exit 1; }
    done < <("${command[@]}" --help | grep -oE -- '^  (-., )?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+')
done
# Each command has a page.
while IFS=$'\t' read -r name _; do
    ls "$2/sdlf-$name"*.1* > /dev/null || { echo "sdlf $name has no page" && exit 1; }
done < <("$1" complete "")
echo "$pages pages are set without a warning and have every option."
