#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Fault injection: checks that sdlf ends cleanly whatever fails beneath it. Each command below is run repeatedly, and each time another call of
# the C library fails: the n-th allocation, the n-th thread creation, or the n-th call on a file (EIO, ENOSPC), that call only or all later ones
# as well, in the program or in any library (tests/faults/shim.c). A file call that is interrupted, or transfers fewer bytes than requested,
# must change nothing. Commands that use CUDA run out of device memory at the n-th call that allocates there, and lose the device at the n-th
# call of the CUDA runtime; without a GPU they run on a stub (tests/stand_in), whose kernels do nothing. Then each command runs under resource
# limits (ulimit): file size in KiB (-f; at least 1, for messages), open files (-n), address space in KiB (-v), processes and threads (-u; if
# run by root, as another user), and, if control groups can be created, a memory limit in KiB (-g; there the kernel may end it with SIGKILL, and
# files of a killed process may remain). A run is wrong if it
#
#   - ends by a signal, or does not end,
#   - succeeds with another output than the undisturbed run,
#   - fails without a message,
#   - leaves a file that is neither the previous one nor complete.
#
#   scripts/faults.sh [options] [COMMAND ...]
#
#   --build FOLDER   the build, with tests (default: build/release)
#   --samples N      runs for each command and kind of failure, spread evenly over all calls; 0: every call (default: 0)
#   --seed N         seed of the samples (default: 1)
#   --jobs N         parallel runs (default: one for each CPU core)
#   --kinds LIST     a subset of "memory threads files device limits" (default: all)
#   --list           only list the commands
#
# A wrong run is reported at once, with the command that reproduces it. Exit status: 0 if there is none.
. "$(dirname "$0")/common.sh"

build=build/release samples=0 seed=1 jobs=$(processors) list=no kinds="memory threads files device limits"
commands=() has_onnx=yes
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2 && shift 2 ;;
    --samples) samples=$2 && shift 2 ;;
    --seed) seed=$2 && shift 2 ;;
    --jobs) jobs=$2 && shift 2 ;;
    --kinds) kinds=$2 && shift 2 ;;
    --list) list=yes && shift ;;
    -*)
        sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
        [ "$1" = --help ] && exit 0 || exit 2
        ;;
    *) commands+=("$1") && shift ;;
    esac
done

# name | the file that it writes, or - | words
all_commands() {
    cat << 'END'
info | - | info --net net.json --mode train --json
info_text | - | info --net lenet5
info_graph | out.svg | info --net net.json --graph out.svg
info_network | - | info --net net.json --json-network
info_time | - | info --weights whole.safetensors --time --threads 2
version | - | --version --json
tensorboard | - | train --data digits:60 --net net.json --epochs 1 --threads 2 --no-save --quiet --tensorboard events --histograms
compare | - | compare whole.jsonl --json
report | out.html | report whole.jsonl whole.safetensors --no-time --threads 2 -o out.html
report_data | out.html | report whole.safetensors --data digits:60 --sample 1 --class 3 --mistakes 2 --no-time --threads 2 -o out.html
sweep | - | sweep --try batch=1,2 --list
sweep_run | - | sweep --try batch=20,30 --folder runs --json -- --data digits:60 --net net.json --epochs 1 --threads 1
config | - | train --data digits:60 --no-save --dry-run --quiet @run.conf
train | out.safetensors | train --data digits:60 --net net.json --epochs 1 --threads 2 -o out.safetensors --log log.jsonl
train_targets | out.safetensors | train --data csv:t.csv,label=3..4 --loss mse --net mlp --epochs 1 --batch 4 --accumulate 2 --ema 0.9 --threads 2 --quiet -o out.safetensors
train_mixed | out.safetensors | train --data digits:60 --net net.json --epochs 1 --threads 2 --quiet --mixup 1 --augment-trivial --class-weights balanced -o out.safetensors
train_pictures | out.safetensors | train --data digits:60 --net net.json --epochs 1 --threads 2 --quiet --augment-rotate 9 --augment-elastic 2 --augment-cutout 4 --lookahead 2 --schedule cosine --optimizer adam -o out.safetensors
train_arrays | out.safetensors | train --data npy:images.npy,labels.npy,all --net mlp --epochs 1 --batch 2 --threads 2 --quiet -o out.safetensors
train_masks | out.safetensors | train --data segmentation:masks --net masks.json --epochs 1 --batch 2 --threads 2 --quiet -o out.safetensors
train_folder | out.safetensors | train --data folder:pictures --net mlp --epochs 1 --batch 2 --threads 2 --quiet -o out.safetensors
train_from | out.safetensors | train --data folder:pictures --from whole.safetensors --epochs 1 --batch 2 --threads 2 --quiet -o out.safetensors
resume | whole.safetensors | train --resume whole.safetensors --epochs 2 --quiet
train_text | out.safetensors | train --data text:words.txt,length=8 --net char_gpt --epochs 1 --threads 2 --quiet -o out.safetensors
generate | - | generate --weights words.safetensors --text green --tokens 4 --threads 2 --json
generate_window | - | generate --weights words.safetensors --text green --tokens 4 --threads 2 --whole-window
eval | - | eval --weights whole.safetensors --data digits:60 --json
eval_views | - | eval --weights whole.safetensors --data digits:60 --tta flip --json
eval_confusion | - | eval --weights whole.safetensors --data digits:60 --confusion
data | out.png | data digits:60 --show out.png --augment-flip
data_targets | - | data csv:t.csv --targets --json
data_folder | - | data folder:pictures
predict | - | predict --weights whole.safetensors --top 2 two.png
predict_labels | - | predict --weights whole.safetensors --labels names.txt --json two.png
predict_rows | - | predict --weights rows.safetensors --json rows.csv
export_onnx | out.onnx | export whole.safetensors -o out.onnx
export_outside | outside.onnx | export whole.safetensors -o outside.onnx --external-data
quantize | out.onnx | quantize whole.safetensors -o out.onnx --weights-only int8
quantize_data | out.onnx | quantize whole.safetensors -o out.onnx --data digits:60 --samples 20 --compare 20 --calibration entropy --threads 2
quantize_onnx | out.onnx | quantize whole.onnx -o out.onnx --weights-only int4 --json
export_c | out.c | export --c whole.safetensors -o out.c
import | out.onnx | export whole.onnx -o out.onnx --json
doctor | - | doctor whole.onnx
doctor_json | - | doctor --json whole.onnx
doctor_nodes | - | doctor --nodes whole.onnx
run | out.npy | run whole.onnx --input x.npy --output out.npy
run_picture | - | run whole.safetensors --input two.png --top 3 --json
serve | - | serve --weights whole.safetensors --threads 2
bench | - | bench --net net.json --data digits:64 --steps 2 --repeats 1 --copy-size 1MB --json
plan_file | plan.txt | bench --net net.json --data digits:64 --steps 2 --repeats 1 --copy-size 1MB --threads 2 --plan-file plan.txt
bench_model | - | bench model whole.onnx --repeats 3 --threads 2 --json
bench_epoch | - | bench epoch --net net.json --data digits:64 --batch 16 --steps 2 --repeats 1 --device-calculator cpu --threads 2 --json
bench_placement | chart.svg | bench placement --net net.json --data digits:64 --batch 16 --iterations 1 --device-calculator cpu --threads 2 --svg chart.svg
bench_kernels | - | bench kernels --operation softmax_forward --elements 4096 --repeats 1 --copy-size 1MB --threads 2 --json
conv_again | chart.svg | bench conv --from report.json --svg chart.svg
conv | report.json | bench conv --shape 2x3x9x9 --kernel 4x3x3 --repeats 1 --copy-size 1MB --json report.json --svg chart.svg
gcn_infer | - | gcn infer --graph rmat:300,2000 --features 10 --hidden 6 --repeats 1 --threads 2
gcn_edges | - | gcn infer --graph snap:cora/edges.txt,undirected --features 10 --hidden 6 --repeats 1 --threads 2
gcn_train | out.safetensors | gcn train --graph planetoid:cora --epochs 3 --out out.safetensors --json
parity | - | parity --net net.json --batch 2 --data digits:60
cuda_info | - | info --net lenet5 --calculator cuda
cuda_train | out.safetensors | train --calculator cuda --data digits:60 --net net.json --epochs 1 --batch 16 --quiet -o out.safetensors --log log.jsonl
cuda_train_bf16 | out.safetensors | train --calculator cuda --math bf16 --data digits:60 --net resnet20 --epochs 1 --batch 32 --quiet -o out.safetensors
cuda_forward | out.safetensors | train --forward cuda --backward cpu --data digits:60 --net net.json --epochs 1 --batch 16 --threads 2 --quiet -o out.safetensors
cuda_resume | whole.safetensors | train --resume whole.safetensors --calculator cuda --epochs 2 --quiet
cuda_eval | - | eval --weights whole.safetensors --calculator cuda --data digits:60 --json
cuda_run | out.npy | run whole.onnx --calculator cuda --math fp16 --input x.npy --output out.npy
cuda_bench | - | bench --net net.json --calculator cuda --data digits:64 --steps 2 --repeats 1 --copy-size 1MB --json
END
}

if [ "$list" = yes ]; then
    all_commands | cut -d' ' -f1
    exit
fi

root=$PWD
sdlf=$(realpath "$build/sdlf")
shim=$(realpath "$build/tests/faults/libsdlf_faults.so") beneath=
stand_in=$(realpath "$build/tests/stand_in")
if ! "$sdlf" info --calculator cuda --net mlp > /dev/null 2>&1 && [ -e "$stand_in/libsdlf_stand_in_cuda.so" ]; then
    beneath=$stand_in/libsdlf_stand_in_cuda.so
    export LD_LIBRARY_PATH=$stand_in
fi
work=$(mktemp -d)
trap 'rm -rf "$work"; for left in "${group:-/nonexistent}".*; do [ ! -d "$left" ] || rmdir "$left"; done' EXIT
ulimit -c 0

# ---- limits other than ulimit's ----

# Limits on processes do not apply to root: then workers run as their own users, who have no other processes.
user_of() { echo $((61000 + ${1//[!0-9]/0})); }
as_user() { setpriv --reuid "$1" --regid "$1" --clear-groups -- "${@:2}"; }
chmod 711 "$work"
has_users=no
if [ "$(id -u)" -ne 0 ]; then
    has_users=own
elif as_user "$(user_of 0)" test -x "$sdlf" 2> /dev/null; then
    has_users=yes
fi

# The folder of a worker's control group, without ".NUMBER", and its limit file; empty: none can be created.
group= group_limit=
if grep -qsw memory /sys/fs/cgroup/cgroup.subtree_control; then
    group=/sys/fs/cgroup/sdlf-faults-$$ group_limit=memory.max
elif [ -w /sys/fs/cgroup/memory/memory.limit_in_bytes ] || [ -w /sys/fs/cgroup/memory/cgroup.procs ]; then
    group=/sys/fs/cgroup/memory/sdlf-faults-$$ group_limit=memory.limit_in_bytes
fi
if [ -n "$group" ] && mkdir "$group.probe" 2> /dev/null; then
    rmdir "$group.probe"
else
    group=
fi

# group_of NUMBER KIB: creates an empty group with this limit.
group_of() {
    local folder=$group.$1
    [ ! -d "$folder" ] || rmdir "$folder"
    mkdir "$folder"
    echo $(($2 * 1024)) > "$folder/$group_limit"
    [ ! -e "$folder/memory.swap.max" ] || echo 0 > "$folder/memory.swap.max"
}

# True if a worker's group ran out of memory: then the kernel ends a process, even one that has only started (execve).
group_was_full() { grep -qsE '^(max |oom_kill )?[1-9]' "$group.$1/memory.events" "$group.$1/memory.failcnt"; }

# ---- inputs of the commands ----

# numpy TYPE SHAPE: prints the header of a .npy file.
numpy() { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': $1, 'fortran_order': False, 'shape': $2, }"; }

make_inputs() {
    mkdir -p "$work/inputs/cora"
    cd "$work/inputs"
    cat > net.json << 'END'
{"name": "small", "input": {"name": "image", "shape": [1, 28, 28]}, "layers": [{"type": "max_pool2d", "window": 2},
 {"type": "conv2d", "filters": 4, "kernel": 3, "padding": 1}, {"type": "relu"}, {"type": "max_pool2d", "window": 2},
 {"type": "dropout", "probability": 0.1}, {"type": "fully_connected", "units": 16}, {"type": "relu"},
 {"type": "fully_connected", "units": 10}, {"type": "softmax"}]}
END
    cp "$root/apps/examples/pictures/two.png" .
    "$sdlf" train --data digits:60 --net net.json --epochs 1 --quiet -o whole.safetensors --log whole.jsonl > /dev/null
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do echo "$i,$((i * 7 % 5)),$((i * 3 % 11)),$((i % 4))"; done > t.csv
    for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo "$i green bottles hanging on the wall"; done > words.txt
    "$sdlf" train --data text:words.txt,length=8 --net char_gpt --epochs 1 --threads 2 --quiet -o words.safetensors > /dev/null
    printf 'net = net.json\nepochs = 1\nthreads = 2\n' > run.conf
    if ! "$sdlf" export whole.safetensors -o whole.onnx > export.out 2>&1; then
        grep -q 'SDLF_ONNX=OFF' export.out || { cat export.out >&2 && exit 1; }
        has_onnx=no
    fi
    rm export.out
    numpy "'<f4'" "(1, 1, 28, 28)" > x.npy
    head -c 3136 /dev/zero >> x.npy
    local class split
    for split in train test; do
        for class in one two; do
            mkdir -p "pictures/$split/$class"
            cp two.png "pictures/$split/$class/1.png"
            cp two.png "pictures/$split/$class/2.png"
        done
    done
    mkdir -p masks/images masks/masks
    for i in 1 2 3 4 5 6 7 8; do # images of 8x8, as IDX: the lower half is of class 1
        {
            printf '\0\0\x08\x03\0\0\0\x01\0\0\0\x08\0\0\0\x08'
            head -c 32 /dev/zero
            head -c 32 /dev/zero | tr '\0' '\1'
        } | tee "masks/images/$i.png" > "masks/masks/$i.png"
    done
    cat > masks.json << 'END'
{"name": "masks", "input": {"name": "image", "shape": [1, 8, 8]}, "layers": [{"type": "conv2d", "filters": 3, "kernel": 3, "padding": 1},
 {"type": "relu"}, {"type": "conv2d", "name": "classes", "filters": 2, "kernel": 1}], "outputs": {"class": "classes"}}
END
    numpy "'<f4'" "(4, 1, 28, 28)" > images.npy
    head -c 12544 /dev/zero >> images.npy
    numpy "'|u1'" "(4,)" > labels.npy
    printf '\0\1\0\1' >> labels.npy
    printf '%s\n' zero one two three four five six seven eight nine > names.txt
    "$sdlf" train --data csv:t.csv,label=3 --net mlp --epochs 1 --threads 2 --quiet -o rows.safetensors > /dev/null
    cut -d, -f1-3 t.csv > rows.csv
    "$sdlf" bench conv --shape 2x3x9x9 --kernel 4x3x3 --repeats 1 --copy-size 1MB --json report.json > /dev/null
    printf 'sdlf plan file 1\n' > plan.txt
    local i part=(train val test)
    for ((i = 0; i < 20; i++)); do # two groups of nodes in rings
        printf '%d\t%d\n' "$i" $(((i + 2) % 20)) >> cora/edges.txt
        printf '%d:1 %d:1\n' $((i % 2)) $((2 + i % 5)) >> cora/features.txt
        printf '%d\n' $((i % 2)) >> cora/labels.txt
        printf '%d\n' "$i" >> "cora/${part[i % 3]}.txt"
    done
    cd "$root"
}

# Prepares a command's folder: the inputs, and the output of an earlier run.
fresh_folder() {
    rm -rf "$1"
    cp -r "$work/inputs" "$1"
    [ "$2" = - ] || [ -e "$1/$2" ] || echo "from before" > "$1/$2"
    [ "$has_users" != yes ] || chmod -R a+rwX "$1"
}

# ---- one run ----

# attempt FOLDER FAULT WORDS...: writes its standard output and error next to the folder.
attempt() {
    local folder=$1 fault=$2 preloaded="$shim $under" start=() status=0
    local number=${folder##*.}
    shift 2
    [[ $fault != -* ]] || preloaded=$under
    local program=(LD_PRELOAD="$preloaded" "$sdlf")
    [ "$1" != serve ] || program=(SDLF_PRELOAD="$preloaded" "$root/tests/faults/serve.sh" "$sdlf" two.png)
    [[ $fault != -u* || $has_users != yes ]] || start=(setpriv --reuid "$(user_of "$number")" --regid "$(user_of "$number")" --clear-groups --)
    if [[ $fault == -g* ]]; then
        group_of "$number" "${fault#-g }"
        start=(bash -c 'echo $$ > "$0/cgroup.procs" && exec "$@"' "$group.$number")
    fi
    { # hides the shell's own message about a signal
        (cd "$folder" && { [[ $fault != -[fnuv]* ]] || ulimit -S $fault; } && exec timeout -k 1 60 "${start[@]}" env OMP_NUM_THREADS=1 OMP_WAIT_POLICY=passive SDLF_FAULT="$fault" \
            SDLF_FAULT_COUNTS="$folder.counts" "${program[@]}" "$@") > "$folder.out" 2> "$folder.err" < /dev/null || status=$?
    } 2> /dev/null
    return "$status"
}

# Prints an output without the machine's current free memory.
steady() {
    LC_ALL=C sed -e 's/"available\(_by\)\{0,1\}": .*/"available":/' -e 's/[0-9.]* [kMG]*B of \(the host.s \)\{0,1\}memory is available\( here\)\{0,1\}\( ([^)]*)\)\{0,1\}/memory/' "$1"
}

# True if two outputs are the same. Where two undisturbed runs differ, in times, only lengths are compared, unless one reports what it had
# no memory for. With fewer threads, as after a failure in commands with --threads, the line about the machine differs.
same() {
    case $3,$4 in
    exact,memory* | exact,-v*) cmp -s <(steady "$1") <(steady "$2") ;;
    length,memory* | length,-v*) [ "$(wc -l < "$1")" -eq "$(wc -l < "$2")" ] || grep -q "no memory" "$1" ;;
    *) [ -s "$1" ] || ! [ -s "$2" ] ;;
    esac
}

# Prints what is wrong with a run that ended with this status; nothing if it is right.
judge() {
    local folder=$1 good=$2 output=$3 status=$4 fault=$5
    if [[ $fault == -* ]] && grep -q -e 'error while loading shared libraries' -e '^timeout: ' "$folder.err"; then return; fi # it has not started
    if [[ $fault == -g* ]] && [ "$status" -eq 137 ] && group_was_full "${folder##*.}"; then
        [ "$output" = - ] || cmp -s "$folder/$output" "$good.before" || cmp -s "$folder/$output" "$good/$output" ||
            [ "$(cat "$good.file.same")" = length ] || echo "the kernel ended it, and it harmed $output"
        return
    fi
    if [ "$status" -ge 124 ]; then
        [ "$status" -eq 124 ] || [ "$status" -eq 137 ] && echo "it does not end" || echo "it ended by signal $((status - 128))"
        return
    fi
    if [ "$status" -eq 0 ]; then
        same "$folder.out" "$good.out" "$(cat "$good.out.same")" "$fault" ||
            echo "it succeeded, and printed something else: $(diff "$good.out" "$folder.out" | grep -a -m 2 '^[<>]' | tr '\n' ' ')"
        [ "$output" = - ] || same "$folder/$output" "$good/$output" "$(cat "$good.file.same")" "$fault" || echo "it succeeded with another $output"
    else
        [ -s "$folder.err" ] || echo "it failed with status $status and said nothing"
        [ "$output" = - ] || cmp -s "$folder/$output" "$good.before" || cmp -s "$folder/$output" "$good/$output" ||
            [ "$(cat "$good.file.same")" = length ] || echo "it failed and harmed $output"
    fi
    local left
    left=$(cd "$folder" && find . -type f -not -name 'events.out.tfevents.*' | sort | comm -23 - "$good.files" | tr '\n' ' ') # event files grow
    [ -z "$left" ] || echo "it left files behind: $left"
}

# ---- a command ----

# Two undisturbed runs: only what is the same in both is compared.
undisturbed() {
    local good=$1 output=$2
    shift 2
    fresh_folder "$good" "$output"
    [ "$output" = - ] || cp "$good/$output" "$good.before"
    fresh_folder "$good.again" "$output"
    if ! { attempt "$good" "" "$@" && attempt "$good.again" "" "$@"; }; then
        cat "$good".*err >&2
        return 1
    fi
    cmp -s <(steady "$good.out") <(steady "$good.again.out") && echo exact > "$good.out.same" || echo length > "$good.out.same"
    # a plan file holds the fastest algorithms of this run
    [ "$output" = - ] || { [ "$output" != plan.txt ] && cmp -s "$good/$output" "$good.again/$output" && echo exact || echo length; } > "$good.file.same"
    (cd "$good" && find . -type f | sort) > "$good.files"
}

# Lists the calls that fail: all, or samples that depend on the seed.
calls() {
    local count=$1 step=1 first=1
    if [ "$samples" -gt 0 ] && [ "$count" -gt "$samples" ]; then
        step=$(((count + samples - 1) / samples))
        first=$((1 + seed % step))
    fi
    seq "$first" "$step" "$count"
}

# Limits from too little to enough; for address space at least the size of the program's file: the kernel itself ends a program that
# it cannot map.
limits() {
    local i all=() least=$(($(stat -c %s "$sdlf") / 1024 + 4000))
    for ((i = 1; i <= 4096; i = i < 8 ? i + 1 : i * 4 / 3)); do all+=("-f $i"); done
    for ((i = 4; i <= 32; i++)); do all+=("-n $i"); done
    for ((i = least > 12000 ? least : 12000; i <= 1500000; i = i * 8 / 7)); do all+=("-v $i"); done
    [ "$has_users" = no ] || for ((i = 1; i <= 12; i++)); do all+=("-u $i"); done
    [ -z "$group" ] || for ((i = 1000; i <= 128000; i = i * 8 / 7)); do all+=("-g $i"); done
    for i in $(calls ${#all[@]}); do echo "${all[i - 1]}"; done
}

# The faults of one kind, if it is selected.
wanted() { [[ " $kinds " != *" $1 "* ]] || "${@:2}"; }

failing_files() {
    local kind
    for kind in EIO ENOSPC EINTR short; do calls "$1" | sed "s/.*/$kind &/"; done
    for kind in EIO ENOSPC; do calls "$1" | sed "s/.*/$kind &+/"; done
}

# failing KIND COUNT: each call alone, and each call with all later ones.
failing() {
    calls "$2" | sed "s/.*/$1 &/"
    calls "$2" | sed "s/.*/$1 &+/"
}

# Worker number $1: runs every jobs-th fault of a file with one fault a line.
worker() {
    local number=$1 name=$2 output=$3
    shift 3
    local folder="$work/$name.$number" good="$work/$name.good" fault wrong status
    while read -r fault; do
        fresh_folder "$folder" "$output"
        status=0
        attempt "$folder" "$fault" "$@" || status=$?
        echo "$status" >> "$folder.status"
        wrong=$(judge "$folder" "$good" "$output" "$status" "$fault")
        [ -z "$wrong" ] || printf '%s, %s failing: %s\n' "$name" "$fault" "$wrong" | tee -a "$work/wrong"
    done < <(awk -v n="$number" -v jobs="$jobs" 'NR % jobs == n' "$work/$name.faults")
}

try_command() {
    local name=$1 output=$2 number memory threads files made called begun=$SECONDS
    shift 2
    undisturbed "$work/$name.good" "$output" "$@" || { echo "$name: it fails undisturbed" | tee -a "$work/wrong" && return; }
    read -r memory threads files made called < "$work/$name.good.counts"
    {
        wanted memory failing memory "$memory"
        wanted threads failing threads "$threads"
        wanted files failing_files "$files"
        wanted device failing device "$made"
        wanted device calls "$called" | sed 's/^/lost /'
        wanted limits limits
    } > "$work/$name.faults"
    for ((number = 0; number < jobs; number++)); do worker "$number" "$name" "$output" "$@" & done
    wait
    cat "$work/$name".*.status 2> /dev/null | sort -n | uniq -c |
        awk -v name="$name" -v memory="$memory" -v threads="$threads" -v files="$files" -v called="$called" -v s=$((SECONDS - begun)) '
            { runs += $1; if ($2 == 0) good += $1 }
            END { printf "%-15s %6d allocations %3d threads %4d calls on files %6d of CUDA  %6d runs: %6d succeeded, %6d failed  %4d s\n", name, memory, threads, files, called, runs, good, runs - good, s }'
}

make_inputs
has_cuda=no
! LD_PRELOAD=$beneath "$sdlf" info --calculator cuda --net mlp > /dev/null 2>&1 || has_cuda=yes
echo "seed $seed, ${samples/#0/all} runs for each command and kind"
[ "$has_users" != no ] || echo "limits of processes are left out: root is not bound by them, and there is no setpriv, or others cannot reach the build"
[ -n "$group" ] || echo "limits of control groups are left out: none can be made here"
: > "$work/wrong"
while IFS='|' read -r name output words; do
    name=${name// /} output=${output// /}
    if [ ${#commands[@]} -gt 0 ] && [[ " ${commands[*]} " != *" $name "* ]]; then continue; fi
    if [ "$has_onnx" = no ] && [[ "$output $words" == *.onnx* ]]; then
        echo "$name is left out: this build has no ONNX"
        continue
    fi
    if [ "$name" = serve ] && "$sdlf" --version --json | grep -q '"libmicrohttpd": *null'; then
        echo "$name is left out: this build serves no pages"
        continue
    fi
    if [ "$has_cuda" = no ] && [[ $name == cuda_* ]]; then
        echo "$name is left out: there is no CUDA"
        continue
    fi
    read -ra words <<< "$words"
    under= # other commands find no device, and open no NVIDIA library
    [[ $name != cuda_* ]] || under=$beneath
    try_command "$name" "$output" "${words[@]}"
done < <(all_commands)
count=$(wc -l < "$work/wrong")
echo "$count wrong"
[ "$count" -eq 0 ]
