#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Trainings interrupted at random and resumed until they end: each must produce bitwise the same file as the undisturbed training. Every start
# draws a number of threads, and a disturbance: Ctrl-C (SIGINT), SIGTERM, two in a row, or SIGKILL, after a random time. A run is wrong if its
# exit code is neither its signal's nor 0, if it does not end, or if its file differs.
#
#   scripts/soak.sh [options]
#
#   --build FOLDER   the build (default: build/release)
#   --seconds N      start no further training after N seconds (default: 60)
#   --trainings N    and no more than N of them (default: no limit)
#   --seed N         seed of the draws; times still depend on the machine (default: 1)
#
# Exit status: 0 if nothing was wrong. Errors are reported at once, and their files kept.
. "$(dirname "$0")/common.sh"

build=build/release seconds=60 most=0 seed=1
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2 && shift 2 ;;
    --seconds) seconds=$2 && shift 2 ;;
    --trainings) most=$2 && shift 2 ;;
    --seed) seed=$2 && shift 2 ;;
    *)
        sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
        [ "$1" = --help ] && exit 0 || exit 2
        ;;
    esac
done

# The trainings: the options of each.
trainings=(
    "--data digits:600 --net net.json --epochs 40 --optimizer adam --augment-shift 2"
    "--data digits:600 --net lenet5 --epochs 6 --momentum 0.9 --ema 0.99 --augment-rotate 10"
    "--data digits:400 --net mlp --epochs 12 --optimizer rmsprop --accumulate 2 --clip-norm 1"
    "--data text:words.txt,length=8 --net char_gpt --epochs 4 --optimizer adamw --batch 8"
    "--data csv:t.csv,label=3..4 --loss mse --net mlp --epochs 60 --batch 4 --lookahead 5"
)

sdlf=$(realpath "$build/sdlf")
work=$(mktemp -d)
cd "$work"
RANDOM=$seed
set -m # a child of a shell without job control would ignore SIGINT

cat > net.json << 'END'
{"name": "small", "input": {"name": "image", "shape": [1, 28, 28]}, "layers": [{"type": "max_pool2d", "window": 2},
 {"type": "conv2d", "filters": 4, "kernel": 3, "padding": 1}, {"type": "batch_norm2d"}, {"type": "relu"}, {"type": "max_pool2d", "window": 2},
 {"type": "dropout", "probability": 0.1}, {"type": "fully_connected", "units": 16}, {"type": "relu"},
 {"type": "fully_connected", "units": 10}, {"type": "softmax"}]}
END
for ((i = 1; i <= 20; i++)); do echo "$i,$((i * 7 % 5)),$((i * 3 % 11)),$((i % 4))"; done > t.csv
for ((i = 1; i <= 60; i++)); do echo "$i green bottles hanging on the wall"; done > words.txt

wrong=0 ended=0 begun=0 resumed=0
declare -A sent=([INT]=0 [TERM]=0 [twice]=0 [KILL]=0 [none]=0)
complain() {
    wrong=$((wrong + 1))
    echo "training $1 (${trainings[$1]}): $2; see $work"
}

# disturb PROCESS HOW MILLISECONDS: sends the drawn signal; the process may have ended.
disturb() {
    sleep "$(printf '0.%03d' "$3")"
    case $2 in
    twice) kill -INT "$1" && sleep "$(printf '0.%03d' $((RANDOM % 20)))" && kill -INT "$1" ;;
    none) ;;
    *) kill "-$2" "$1" ;;
    esac 2> /dev/null || true
}

# train_disturbed NUMBER FILE: runs until training has ended by itself.
train_disturbed() {
    local number=$1 file=$2 hows=(INT INT INT TERM twice KILL none) how status words tries=0
    while [ "$tries" -lt 500 ]; do
        tries=$((tries + 1))
        how=${hows[RANDOM % ${#hows[@]}]}
        read -ra words <<< "${trainings[number]} --out $file"
        if [ -e "$file" ]; then
            words=(--resume "$file")
            resumed=$((resumed + 1))
        fi
        "$sdlf" train "${words[@]}" --quiet --threads $((1 + RANDOM % 4)) > run.out 2> run.err < /dev/null &
        local process=$!
        begun=$((begun + 1))
        sent[$how]=$((sent[$how] + 1))
        disturb "$process" "$how" $((RANDOM % 700))
        status=0
        wait "$process" 2> /dev/null || status=$?
        case $how,$status in
        *,0) return ;;
        INT,130 | twice,130 | TERM,143 | KILL,137) ;;
        *)
            if grep -q 'has done its [0-9]* epochs' run.err; then return; fi # it was stopped after the last epoch
            complain "$number" "disturbed by $how it ended with $status: $(tail -n 1 run.err)"
            return 1
            ;;
        esac
    done
    complain "$number" "it does not come to its end"
    return 1
}

for number in "${!trainings[@]}"; do
    read -ra words <<< "${trainings[number]}"
    "$sdlf" train "${words[@]}" --quiet --out "whole$number.safetensors" > /dev/null
done
begin=$SECONDS
while [ $((SECONDS - begin)) -lt "$seconds" ] && { [ "$most" -eq 0 ] || [ "$ended" -lt "$most" ]; }; do
    number=$((RANDOM % ${#trainings[@]})) file=run$ended.safetensors
    if train_disturbed "$number" "$file"; then
        ended=$((ended + 1))
        cmp "$file" "whole$number.safetensors" || complain "$number" "it ended with another file, $file"
        [ "$wrong" -gt 0 ] || rm -f "$file"
    fi
    [ "$wrong" -lt 5 ] || break
done
echo "$ended trainings in $begun runs, $resumed of them resumed; ${sent[INT]} SIGINT, ${sent[TERM]} SIGTERM, ${sent[twice]} two SIGINT," \
    "${sent[KILL]} SIGKILL, ${sent[none]} undisturbed; $wrong wrong"
[ "$wrong" -gt 0 ] || rm -rf "$work"
[ "$wrong" -eq 0 ]
