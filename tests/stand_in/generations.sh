#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# generations.sh SDLF FOLDER: on the stand-in in FOLDER (cuda_runtime.c), networks are trained and run for GPUs of each generation, in every
# mode that it has: each plan is made, and each launch is one that such a device takes.
set -euo pipefail

sdlf=$1 folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$folder
failed=0

# on CAPABILITY WORDS...: run sdlf on such a device; it must succeed and launch kernels.
on() {
    rm -f "$work/launches"
    if ! SDLF_STAND_IN_CAPABILITY=$1 SDLF_STAND_IN_LAUNCHES=$work/launches LD_PRELOAD=$folder/libsdlf_stand_in_cuda.so \
        "$sdlf" "${@:2}" --calculator cuda > "$work/out" 2>&1 || [ ! -s "$work/launches" ]; then
        printf 'compute capability %s: sdlf %s\n' "$1" "${*:2}"
        tail -n 3 "$work/out"
        failed=1
    fi
}

cat > "$work/lstm.json" << 'END'
{"name": "lstm_gru", "input": {"name": "x", "shape": [1, 28, 28]}, "layers": [
  {"type": "reshape", "shape": [28, 28]}, {"type": "lstm", "units": 256}, {"type": "gru", "units": 500, "last": true},
  {"type": "fully_connected", "units": 10}]}
END
for capability in 75 80 89 90 120; do
    for math in fp32 fp16 tf32 bf16; do
        [ "$capability" != 75 ] || [ "$math" = fp32 ] || [ "$math" = fp16 ] || continue # it has no others
        for net in simple_cnn resnet20 mobilenet_v2 vit_tiny "$work/lstm.json"; do
            on "$capability" train --net "$net" --data digits:40 --epochs 1 --batch 16 --math "$math" --no-save --quiet
        done
    done
done
exit "$failed"
