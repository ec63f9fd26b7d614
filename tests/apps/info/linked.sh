#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Does `sdlf --version --json` name every library that the program is linked with, with its licence, and its version where it says one?
#
#   linked.sh SDLF
set -euo pipefail
command -v readelf > /dev/null || { echo "skipped: there is no readelf" && exit 77; }
said=$("$1" --version --json)
files=("$(realpath "$1")")
library=$(ldd "${files[0]}" | sed -n 's/.*libsdlf\.so[^ ]* => \([^ ]*\).*/\1/p')
[ -z "$library" ] || files+=("$library")
failed=0
while read -r needed; do
    case $needed in
    libsdlf.* | libasan.* | libubsan.* | libtsan.* | libgcc_s.*) continue ;;
    libz.*) name=zlib ;;
    libjansson.*) name=jansson ;;
    libpng*) name=libpng ;;
    libturbojpeg.*) name=libjpeg-turbo ;;
    libprotobuf-c.*) name=protobuf-c ;;
    libmicrohttpd.*) name=libmicrohttpd ;;
    libmpi*) name=MPI ;;
    libopenblas* | libcblas* | libblas*) name=blas ;;
    libcudnn*) name=cuDNN ;;
    libnccl*) name=NCCL ;;
    libcu* | libnv*) name=CUDA ;;
    libc.* | libm.* | libdl.* | libpthread.* | librt.* | ld-linux* | ld-musl*) name='C Library\|musl' ;;
    *) name="$needed, of which this test knows nothing" ;;
    esac
    grep -i "\"name\": \".*\($name\)" <<< "$said" > /dev/null || { echo "$needed is linked, and not named: no '$name'" && failed=1; }
done < <(readelf -d "${files[@]}" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u)
# Those of OpenMP and oneTBB, and other C libraries than GNU's, do not say it.
while read -r name; do
    case $name in
    *gomp | *OpenMP | oneTBB | 'C Library') ;;
    *) echo "$name has no version" && failed=1 ;;
    esac
done < <(tr -d '\n' <<< "$said" | grep -o '"name": "[^"]*", *"version": null' | sed 's/"name": "//; s/".*//')
exit "$failed"
