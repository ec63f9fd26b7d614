#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Does a browser show the page of `sdlf train --serve`, with curves that its script has fetched, without a complaint?
#
#   browser.sh SDLF      the sdlf program
set -euo pipefail
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$browser" ] || { echo "skipped: there is no Chromium" && exit 77; }
folder=$(mktemp -d)
"$1" train --net lenet5 --data digits:600 --epochs 100000 --no-save --serve > "$folder/out" 2> "$folder/err" &
training=$!
trap 'kill "$training" 2> /dev/null || true; wait "$training" || true; rm -rf "$folder"' EXIT
until grep '^epoch ' "$folder/out" > /dev/null; do
    kill -0 "$training" 2> /dev/null || { grep 'libmicrohttpd' "$folder/err" && echo "skipped: this build serves no pages" && exit 77; cat "$folder/err" && exit 1; }
    sleep 0.1
done
address=$(grep -o 'http://127[^ ]*' "$folder/out")
parts=('<figcaption>Loss</figcaption>' 'Epoch ' 'id="stop"' 'Nothing is kept, as --no-save asks.')
for try in 1 2 3 4 5; do # the script's first request may be under way when the browser says what it has
    timeout 120 "$browser" --headless --no-sandbox --disable-gpu --user-data-dir="$folder/profile" --enable-logging=stderr \
        --virtual-time-budget=3000 --dump-dom "$address" > "$folder/dom" 2> "$folder/said" || { cat "$folder/said" && exit 1; }
    if grep -E 'CONSOLE|Content Security Policy' "$folder/said"; then
        echo "the browser complains of the page" && exit 1
    fi
    missing=
    for part in "${parts[@]}"; do
        grep -F "$part" "$folder/dom" > /dev/null || missing=$part
    done
    [ -n "$missing" ] || break
done
[ -z "$missing" ] || { cat "$folder/dom" && echo "the page lacks $missing, looked at $try times" && exit 1; }
echo "The page is shown, with the curves so far."
