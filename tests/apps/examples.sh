#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The example programs do what they say. Each runs in a temporary folder, on digits that SDLF draws itself.
#
#   examples.sh FOLDER_OF_EXAMPLES SDLF_PROGRAM [EMULATOR WORD...]
set -euo pipefail
examples=$(realpath "$1")
program=$(realpath "$2")
emulator=("${@:3}")
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT
cd "$temporary"

# expect NAME PATTERN [WORD...]: run it with these words; what it prints must match.
expect() {
    local said
    printf '\n-- %s\n' "$1 ${*:3}"
    said=$("${emulator[@]}" "$examples/$1" "${@:3}" 2>&1) || { printf '%s\n%s failed\n' "$said" "$1" && exit 1; }
    tail -n 4 <<< "$said"
    grep -E "$2" <<< "$said" > /dev/null || { printf '%s\n%s: expected a line with %s\n' "$said" "$1" "$2" && exit 1; }
}

# fails NAME PATTERN [WORD...]: it must end with status 1 and such a message, not by a signal.
fails() {
    local said code=0
    said=$("${emulator[@]}" "$examples/$1" "${@:3}" 2>&1) || code=$?
    [ "$code" -eq 1 ] && grep -E "$2" <<< "$said" > /dev/null ||
        { printf '%s\n%s: expected status 1 and %s, found %s\n' "$said" "$1" "$2" "$code" && exit 1; }
}

expect own_arrays 'epoch 100/100  loss 0\.0[0-9]+  test (100|99)\.[0-9]%'
expect karate_club '^3[2-4] of 34 members'
expect two_threads '^lenet5 .*the same alone$'
expect extend '^[1-9][0-9]+ products'
expect train_mnist 'test [89][0-9]\.[0-9]+%' digits:2000
expect camera_frame '^([89]|10) of 10 frames right' train_mnist.safetensors
fails camera_frame 'nothing-here cannot be read' nothing-here

# A network of seven classes, which learns ten.
cat > seven.json << 'JSON'
{"name": "seven", "input": {"name": "image", "shape": [1, 28, 28]}, "layers": [
  {"type": "conv2d", "filters": 8, "kernel": 5}, {"type": "relu"}, {"type": "max_pool2d", "window": 2},
  {"type": "fully_connected", "units": 7}, {"type": "softmax"}]}
JSON
if "$program" export seven.json -o seven.onnx; then
    expect finetune_onnx 'epoch 3/3 .* test [89][0-9]\.[0-9]%' seven.onnx digits:2000
    expect camera_frame '^([789]|10) of 10 frames right' finetuned.onnx
    fails finetune_onnx "cannot open 'nothing-here'" nothing-here
else
    fails finetune_onnx 'protobuf-c' seven.json # without which a build reads no ONNX
fi
