#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Do dependencies point the way that CONTRIBUTING.md says? Each folder's files include headers of the folders that it may use; the public
# ones, <sdlf/...>, are everybody's.
#
#   arrows.sh FOLDER      the project's folder
set -euo pipefail
cd "$1"
failed=0

# may FOLDER PATTERN: what the files below FOLDER include of the tree begins with PATTERN, an extended regular expression.
may() {
    local found
    found=$(grep -rnE '^#include "[a-z0-9_]+/' --include='*.[ch]' --include='*.cu' --include='*.cuh' "$1" | grep -vE "#include \"($2)" || true)
    [ -z "$found" ] && return
    printf '%s\n' "$found"
    failed=$((failed + $(wc -l <<< "$found")))
}

may framework 'framework/|layers/list\.h'
may framework/operations 'framework/operations/'
may framework/optimizers 'framework/optimizers/'
may framework/machine 'framework/(machine/|[a-z_]+\.h)'
may framework/formats 'framework/(formats/|machine/|operations/|[a-z_]+\.h)|layers/list\.h'
may framework/plan 'framework/([a-z_]+\.h|machine/|operations/(augmented|gemm_weight_only)\.h|plan/)'
may layers 'layers/'
may datasets 'datasets/|framework/(parallel|portable|require)\.h|framework/formats/(budget|byte_stream|npy|read_file|text|zip)\.h'
may graphs 'graphs/|framework/formats/(budget|byte_stream)\.h'
may python 'nothing'
may apps 'apps/|framework/(clock|json_cost|sort)\.h'
may apps/examples 'nothing'

common='calculators/[a-z_]+\.h|calculators/fusions/|framework/operations/|framework/(clock|heap|portable)\.h'
may calculators/fusions "calculators/fusions/|framework/operations/"
may calculators/reference "calculators/reference/|$common"
may calculators/cpu "calculators/cpu/|$common|framework/clock\\.h"
may calculators/cuda "calculators/cuda/|lab/(conv2d|gemm)\\.h|$common"
may lab 'lab/|calculators/cuda/'
may communicators 'communicators/|framework/(clock|float16)\.h|calculators/cuda/cuda\.h'
may communicators/mpi 'communicators/|framework/(clock|float16)\.h'
may calculators/cudnn "calculators/(cudnn|cuda)/|$common"

# CUDA's own headers, and those of libraries on it, stand in these folders alone.
cuda=$(grep -rnE '^ *# *include <(cuda|cudnn|cublas)' --include='*.[ch]' --include='*.cu' --include='*.cuh' framework layers datasets graphs apps calculators communicators lab |
    grep -vE '^(calculators/(cuda|cudnn)|communicators/nccl|lab)/' || true)
if [ -n "$cuda" ]; then
    printf '%s\n' "$cuda"
    failed=$((failed + $(wc -l <<< "$cuda")))
fi

if [ "$failed" -ne 0 ]; then
    echo "$failed includes point the wrong way"
    exit 1
fi
echo "Every include points the way that it may."
