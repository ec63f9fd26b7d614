# SPDX-License-Identifier: MIT
# scripts/gpu-check.sh: what is timed, on one device and on two, and what two compute.
# shellcheck shell=bash disable=SC2154 # sdlf, logs and data are the script's, outcome and spent are `within`'s

step "Benchmarks (simple_cnn)"
for math in fp32 tf32; do
    for batch in 16 64 1024; do
        log=$logs/bench-$math-$batch.log
        within 30 "$log" "$sdlf" bench --net simple_cnn --calculator cuda --math "$math" --batch "$batch" --data "$data" --repeats 10
        note=$log
        if [ "$outcome" = ok ]; then
            note="$(sed -n 's/^epoch *//p' "$log"); floor $(sed -n 's/^floor *//p' "$log")"
            sed -n '/^epoch/,$p' "$log"
        elif grep -q "has no $math" "$log"; then
            outcome="not run"
            note="this GPU has no $math"
        else
            tail -n 5 "$log"
        fi
        row "bench $math $batch" "$outcome" "$spent" "$note"
    done
done

# Every kernel beside the limits, and what auto takes of simple_cnn's, VGG16's and MobileNetV2's convolutions: few samples each.
step "Benchmarks (kernels, convolutions)"
for what in "kernels" "conv --workload networks --rung auto --no-check"; do
    read -r -a words <<< "$what"
    for math in fp32 tf32; do
        log=$logs/bench-${words[0]}-$math.log
        within 40 "$log" "$sdlf" bench "${words[@]}" --calculator cuda --math "$math" --seconds 0.003 --repeats 3
        if [ "$outcome" = ok ]; then
            note="$(sed -n 's/^limits *//p' "$log" | head -n 1); $log"
        elif grep -q "has no $math" "$log"; then
            outcome="not run"
            note="this GPU has no $math"
        else
            note=$log
            tail -n 5 "$log"
        fi
        row "bench ${words[0]} $math" "$outcome" "$spent" "$note"
    done
done

step "Parity (cpu against cuda) and placement"
for what in "cuda simple_cnn float32" "cuda lenet5 float32" "cuda simple_cnn float64" "cuda:tf32 simple_cnn float32"; do
    read -r side net dtype <<< "$what"
    log=$logs/parity-${side/:/-}-$net-$dtype.log
    within 30 "$log" "$sdlf" parity --a cpu --b "$side" --net "$net" --dtype "$dtype" --batch 64 --data "$data"
    if [ "$outcome" = FAILED ] && grep -q "has no tf32" "$log"; then outcome="not run"; fi
    row "parity $side" "$outcome" "$spent" "$net $dtype: $(tail -n 1 "$log")"
done
log=$logs/placement.log
within 90 "$log" "$sdlf" bench placement --iterations 10 --data "$data" --svg "$logs/placement.svg"
if [ "$outcome" = ok ]; then
    row placement ok "$spent" "$(sed -n 's/^limit *//p' "$log" | tail -n 1)"
    sed -n '/^batch/,$p' "$log"
else
    tail -n 5 "$log"
    row placement "$outcome" "$spent" "$log"
fi

step "An epoch on host and device, layer by layer"
log=$logs/epoch.log
within 60 "$log" "$sdlf" bench epoch --batch 64 --batch 1024 --steps 30 --repeats 3 --data "$data"
if [ "$outcome" = ok ]; then
    sed -n '/^epoch/,/^$/p; /^  batch/,/^$/p' "$log"
    row epoch ok "$spent" "$(awk '/^  batch/ { under = 1; next } !NF { under = 0 }
        under { printf "%sbatch %s: %s times the host", sep, $1, $NF; sep = ", " }' "$log")"
else
    tail -n 5 "$log"
    row epoch "$outcome" "$spent" "$log"
fi

step "Graph convolution (281,903 nodes)"
for dtype in f64 f32; do
    log=$logs/gcn-$dtype.log
    within 30 "$log" "$sdlf" gcn infer --calculator cuda --dtype "$dtype"
    if [ "$outcome" = ok ]; then
        sed -n '/^  operation/,/^  all/p' "$log"
        row "gcn $dtype" ok "$spent" "$(sed -n 's/^  all together  *//p' "$log") ms"
    else
        tail -n 5 "$log"
        row "gcn $dtype" "$outcome" "$spent" "$log"
    fi
done
