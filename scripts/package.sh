#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Build packages: sdlf, libsdlf0.2, libsdlf-dev and python3-sdlf for Debian and Ubuntu, and one .tar.gz of all, in
# build/package/packages.
#
#   scripts/package.sh [CMAKE_OPTION...]      -DSDLF_CUDA=OFF; -DSDLF_PACKAGE_CONTACT="Name <mail>"
#
# python3-sdlf is for the distribution's own Python (/usr/bin/python3, python3-dev, python3-venv), and needs nanobind from PyPI; without
# it, the package is left out.
#
# The same commit gives the same bytes, with the same compiler and libraries.
. "$(dirname "$0")/common.sh"

folder=build/package
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 1700000000)}
export SOURCE_DATE_EPOCH
python=(-DSDLF_PYTHON_PACKAGE=OFF)
if ! log=$(/usr/bin/python3 -m venv "$folder-python" 2>&1 &&
    "$folder-python/bin/pip" install --disable-pip-version-check --retries 2 --timeout 20 -q nanobind==3.1.0 2>&1); then
    printf '%s\nNo python3-sdlf: there is no nanobind.\n' "$(tail -n 2 <<< "$log")"
elif [ ! -f "$(/usr/bin/python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ]; then
    echo "No python3-sdlf: the headers of Python are missing (python3-dev)."
else
    python=(-DSDLF_PYTHON_PACKAGE=ON "-DPython_EXECUTABLE=$PWD/$folder-python/bin/python")
fi
cmake -S . -B "$folder" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DBUILD_SHARED_LIBS=ON -DSDLF_BUILD_TESTS=OFF "${python[@]}" "$@"
cmake --build "$folder" --parallel "$(nproc)"
rm -rf "$folder/packages"
generators=TGZ
if command -v dpkg-deb > /dev/null; then generators="DEB;TGZ"; fi
(cd "$folder" && cpack -G "$generators" -B packages && rm -rf packages/_CPack_Packages)
ls -l "$folder/packages"
if command -v lintian > /dev/null && [[ $generators == DEB* ]]; then
    lintian --fail-on error "$folder"/packages/*.deb
fi
