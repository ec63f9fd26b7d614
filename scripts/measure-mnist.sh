#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Accuracies on real MNIST, as docs/notebook/performance.md lists them.
#
#   scripts/measure-mnist.sh SDLF DIR [OPTION...]
#
# SDLF is the program, DIR the folder of the four files; options (--threads 2, --calculator cuda) go to every run. Training is
# bitwise reproducible at any number of threads, so accuracies depend on the machine only through its vector instructions
# (SDLF_SIMD); times depend on it.
set -euo pipefail

[ $# -ge 2 ] || { sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 2; }
sdlf=$1
data=$2
shift 2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# train NAME OPTION...: prints the lines of each epoch.
train() {
    "$sdlf" train --data "mnist:$data" --out "$folder/weights" --log "$folder/log" "$@" > "$folder/text" ||
        { cat "$folder/text"; exit 1; }
    grep -E '^epoch [0-9]+/[0-9]+  loss' "$folder/text"
    rm -f "$folder/weights" "$folder/log"
}

echo "-- simple_cnn, 1 epoch, batch 64"
train --net simple_cnn --epochs 1 "$@"
echo "-- simple_cnn, 5 epochs, batch 64"
train --net simple_cnn --epochs 5 "$@"
echo "-- lenet5, 10 epochs, batch 64"
train --net lenet5 --epochs 10 "$@"
echo "-- fast_cnn, 1 epoch, as it is trained by default, ten seeds"
for seed in 1 2 3 4 5 6 7 8 9 10; do
    train --net fast_cnn --epochs 1 --seed "$seed" "$@"
done | tee "$folder/fast"
sed -E 's/.*test ([0-9.]+)%  (.*)  weights.*/\1 \2/' "$folder/fast" | awk '{ sum += $1; n++; seconds += $2 }
    END { printf "mean of %d seeds: %.2f%%, %.2f s of training\n", n, sum / n, seconds / n }'
