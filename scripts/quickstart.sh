#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# From a clean clone to classified images: install what is missing, build, train, test, predict.
#
#   scripts/quickstart.sh            learns MNIST where it finds it (SDLF_DATA/mnist, data/mnist), else digits that SDLF draws itself
#   scripts/quickstart.sh --short    learns 6,000 digits once: a trial of a few seconds
#
# The weights go to simple_cnn.safetensors in the project's folder.
. "$(dirname "$0")/common.sh"

data=digits
epochs=2
for folder in "${SDLF_DATA:-}/mnist" data/mnist; do
    if compgen -G "$folder/train-images*" > /dev/null; then
        data=mnist:$folder
        break
    fi
done
case ${1:-} in
"") ;;
--short)
    data=digits:6000
    epochs=1
    ;;
*)
    sed -n '3,/^[^#]/s/^# \{0,1\}//p' "$0"
    [ "$1" = --help ] || exit 2
    exit 0
    ;;
esac

# Waiting threads yield: on a busy machine spinning would cost more time than it saves.
export OMP_WAIT_POLICY=${OMP_WAIT_POLICY:-passive}

step "Packages"
scripts/setup.sh

# The GPU kernels take longer to compile than all the rest, and without a GPU nothing here runs them. A build without them has its
# own folder: CMake would keep that choice in build/release, from which people install.
preset=release
if ! gpu_is_there && command -v "${CUDACXX:-nvcc}" > /dev/null; then
    echo "There is no GPU here: building without the cuda calculator."
    preset=cpu-only
fi

step "Build (build/$preset)"
run cmake --preset "$preset"
run cmake --build --preset "$preset" --target sdlf_program --parallel "$(processors)"
sdlf=build/$preset/sdlf

step "Train"
run "$sdlf" train --data "$data" --net simple_cnn --epochs "$epochs" --out simple_cnn.safetensors

step "Test, with a table of which digit was taken for which"
run "$sdlf" eval --weights simple_cnn.safetensors --data "$data" --confusion

step "Predict"
run "$sdlf" predict --weights simple_cnn.safetensors --draw apps/examples/pictures/three.png
run "$sdlf" predict --weights simple_cnn.safetensors apps/examples/pictures/*.png

step "Done in $SECONDS s"
echo "'$sdlf help' lists what else there is. Pictures of your own, PNG or PGM: $sdlf predict --weights simple_cnn.safetensors FILE"
