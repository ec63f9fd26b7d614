#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# storage.sh SDLF FOLDER: on the stand-in in FOLDER (cuda_runtime.c), the plans of networks list which operations store 16 bits: on compute
# capability 9.0 those of a transformer's rows, forward and backward, and of a convolution with its pooling; on others none.
set -euo pipefail

sdlf=$1 folder=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH=$folder
failed=0

# stored CAPABILITY TYPE WORDS...: the operations of the plan whose results have that type, each with how often, on one line.
stored() {
    local capability=$1 type=$2
    shift 2
    SDLF_STAND_IN_CAPABILITY=$capability LD_PRELOAD=$folder/libsdlf_stand_in_cuda.so \
        "$sdlf" info --calculator cuda --steps "$@" | awk -v type="$type" '
        $1 ~ /^[0-9]+$/ { for (i = 5; i <= NF; i++) if ($i == type) { count[$4]++; break } }
        END { for (name in count) print name "=" count[name] }' | LC_ALL=C sort | tr '\n' ' '
}

# expect WHAT FOUND EXPECTED
expect() {
    [ "$2" = "$3" ] && return
    printf '%s\n  stored:   %s\n  expected: %s\n' "$1" "$2" "$3"
    failed=1
}

device=$(SDLF_STAND_IN_CAPABILITY=90 LD_PRELOAD=$folder/libsdlf_stand_in_cuda.so "$sdlf" info --net mlp --calculator cuda)
if [[ $device != *'kernels built for 9.0'* ]]; then
    echo "skipped: this build has no kernels for compute capability 9.0"
    exit 77
fi
cat > "$work/pooled.json" << 'END'
{"name": "pooled", "input": {"name": "x", "shape": [3, 128, 128]}, "layers": [
  {"type": "conv2d", "filters": 64, "kernel": 3, "padding": 1}, {"type": "relu"}, {"type": "max_pool2d", "window": 2},
  {"type": "conv2d", "filters": 64, "kernel": 3, "padding": 1}, {"type": "relu"}, {"type": "max_pool2d", "window": 2},
  {"type": "conv2d", "filters": 64, "kernel": 3, "padding": 1}, {"type": "relu"},
  {"type": "fully_connected", "units": 10}, {"type": "softmax"}]}
END
for math in bf16:bfloat16 fp16:float16; do
    type=${math#*:} math=${math%:*}
    trained=$(stored 90 "$type" --net vit_tiny --batch 64 --math "$math")
    expect "vit_tiny, trained in $math" "$trained" 'activation_backward=6 activation_forward=6 add=12 attention_backward=6 attention_forward=6 binary=2 conv2d_forward=1 copy=4 gemm=24 normalize_backward=13 normalize_forward=13 '
    run=$(stored 90 "$type" --net vit_tiny --batch 64 --math "$math" --mode infer)
    expect "vit_tiny, run in $math" "$run" 'attention_forward=6 binary=1 copy=1 gemm=24 normalize_forward=12 '
    pooled=$(stored 90 "$type" --net "$work/pooled.json" --batch 32 --math "$math" --mode infer)
    expect "convolutions and pooling in $math" "$pooled" 'conv2d_forward=1 conv2d_relu_max_pool_forward=2 copy=1 '
    few=$(stored 90 "$type" --net simple_cnn --batch 1024 --math "$math")
    expect "simple_cnn, trained in $math" "$few" ''
    older=$(stored 80 "$type" --net vit_tiny --batch 64 --math "$math")
    expect "vit_tiny on compute capability 8.0 in $math" "$older" ''
done
exit "$failed"
