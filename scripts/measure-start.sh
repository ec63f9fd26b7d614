#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The start-up time of the program: to print its version, to list its options, to classify one image.
#
#   scripts/measure-start.sh [PROGRAM [RUNS]]      default: build/release/sdlf, 50 runs, of which the median counts
#
# Weights are created on the way, in a temporary folder.
. "$(dirname "$0")/common.sh"

case ${1:-} in
-h | --help) sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0" && exit 0 ;;
esac
sdlf=${1:-build/release/sdlf}
runs=${2:-50}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

median() { sort -n | sed -n "$(((runs + 1) / 2))p"; }

# measure NAME WORD...: prints a line with the median of the program's milliseconds.
measure() {
    local name=$1 begun ended
    shift
    for _ in $(seq "$runs"); do
        begun=${EPOCHREALTIME/[.,]/}
        "$sdlf" "$@" > "$folder/out"
        ended=${EPOCHREALTIME/[.,]/}
        echo $((ended - begun))
    done | median | awk -v name="$name" '{ printf "%-32s %7.1f ms\n", name, $1 / 1000 }'
}

measure "sdlf --version" --version
measure "sdlf train --help" train --help
for net in lenet5 simple_cnn; do
    "$sdlf" train --net "$net" --data digits:200 --epochs 1 --quiet --out "$folder/$net.safetensors"
    measure "sdlf predict, $net" predict --weights "$folder/$net.safetensors" apps/examples/pictures/seven.png
done
