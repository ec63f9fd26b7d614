#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Coverage of each reader by the inputs of its fuzz target, as a Markdown table: functions of the reader's source files, and control-flow
# edges in the functions entered. Edges include the sanitizers' checks, whose failing side no input may reach.
#
#   scripts/fuzz-coverage.sh [--build FOLDER] [--found FOLDER] [TARGET ...]
#
#   --build FOLDER   a build of the preset fuzz, with fuzz_targets (default: build/fuzz)
#   --found FOLDER   more inputs, in a folder for each target (default: the build's tests/fuzz/found)
. "$(dirname "$0")/common.sh"

build=build/fuzz found="" targets=()
while [ $# -gt 0 ]; do
    case $1 in
    --build) build=$2 && shift 2 ;;
    --found) found=$2 && shift 2 ;;
    -*)
        sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
        [ "$1" = --help ] && exit 0 || exit 2
        ;;
    *) targets+=("$1") && shift ;;
    esac
done
: "${found:=$build/tests/fuzz/found}"
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(cd tests/fuzz && printf '%s\n' fuzz_*.c | sed 's/fuzz_\(.*\)\.c/\1/')

# The source files that a target tests, as a pattern.
sources_of() {
    case $1 in
    c_export) echo framework/formats/c/ ;;
    cifar) echo datasets/cifar ;;
    config) echo apps/arguments/config ;;
    csv) echo datasets/csv ;;
    edge_list) echo 'graphs/(edge|adjacency)' ;;
    exif) echo datasets/images/exif ;;
    http) echo apps/serve/http ;;
    idx) echo datasets/idx ;;
    image) echo datasets/images/ ;;
    lab_report) echo apps/bench/conv/read ;;
    labels) echo apps/input/labels ;;
    network) echo 'framework/formats/(network|json)' ;;
    npy) echo framework/formats/npy ;;
    npz) echo '(datasets/npz|framework/formats/zip)' ;;
    onnx) echo framework/formats/onnx/ ;;
    plan_file) echo framework/formats/choices ;;
    run_log) echo apps/runs/run_log ;;
    safetensors) echo 'framework/formats/(safetensors|weights|training_json)' ;;
    text) echo datasets/text ;;
    *) echo "$0: the sources of '$1' are not in the list" >&2 && return 1 ;;
    esac
}

echo "| reader | inputs | functions | entered | edges in them | reached |"
echo "|---|---|---|---|---|---|"
for target in "${targets[@]}"; do
    sources=$(sources_of "$target")
    folders=("tests/fuzz/corpus/$target")
    [ ! -d "$found/$target" ] || folders+=("$found/$target")
    said=$build/coverage-$target.log
    "$build/tests/fuzz/fuzz_$target" -runs=0 -print_coverage=1 -rss_limit_mb=4096 -timeout=120 "${folders[@]}" > "$said" 2>&1 ||
        { tail -n 5 "$said" >&2 && exit 1; }
    # COVERED_FUNC: hits: 8 edges: 5/9 number_behind FOLDER/../../framework/machine/lines.c:86
    awk -v name="$target" -v sources="/$sources" -v inputs="$(find "${folders[@]}" -type f | wc -l)" '
        $1 ~ /COVERED_FUNC/ && $NF ~ sources {
            functions++
            split($5, edge, "/")
            if (edge[1] > 0) { entered++; reached += edge[1]; edges += edge[2] }
        }
        END { printf "| %s | %d | %d | %d %% | %d | %d %% |\n", name, inputs, functions, 100 * entered / functions, edges, 100 * reached / edges }' "$said"
done
