#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Does a browser show a report, on a screen and on paper, without a complaint, and without asking for anything?
#
#   browser.sh SDLF      the sdlf program
set -euo pipefail
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "skipped: there is no Chromium" && exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$1" train --net lenet5 --data digits:600 --epochs 2 --quiet --log "$folder/run.jsonl" --out "$folder/lenet5.safetensors"
"$1" report "$folder/run.jsonl" "$folder/lenet5.safetensors" -o "$folder/report.html" > /dev/null

# show WORD...: what the page's console says stands in $folder/said
show() {
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$folder/profile" --enable-logging=stderr "$@" "file://$folder/report.html" \
        > "$folder/dom" 2> "$folder/said" || { cat "$folder/said" && exit 1; }
    if grep -E 'CONSOLE|Content Security Policy' "$folder/said"; then
        echo "the browser complains of the page" && exit 1
    fi
}

show --window-size=1000,1200 --screenshot="$folder/light.png"
show --window-size=1000,1200 --screenshot="$folder/dark.png" --blink-settings=preferredColorScheme=0
show --window-size=360,1200 --screenshot="$folder/narrow.png"
show --print-to-pdf="$folder/report.pdf"
show --dump-dom
for picture in light dark narrow; do
    [ "$(stat -c %s "$folder/$picture.png")" -gt 20000 ] || { echo "$picture.png shows next to nothing" && exit 1; }
done
! cmp -s "$folder/light.png" "$folder/dark.png" || { echo "light and dark look the same" && exit 1; }
[ "$(head -c 5 "$folder/report.pdf")" = "%PDF-" ] || { echo "it cannot be printed" && exit 1; }
# The parser has moved nothing about: as many sections and rows as were written.
for part in '<h2 ' '<tr>' '<img ' '<figure>'; do
    [ "$(grep -oF "$part" "$folder/report.html" | wc -l)" = "$(grep -oF "$part" "$folder/dom" | wc -l)" ] || { echo "the browser has another number of $part" && exit 1; }
done
echo "The page is shown, light and dark, narrow, and on paper."
