#!/usr/bin/env bash
# Make packages: sdlf, libsdlf0 and libsdlf-dev for Debian and Ubuntu, and one .tar.gz of all. They lie in build/package/packages.
#
#   scripts/package.sh [CMAKE_OPTION...]      -DSDLF_CUDA=OFF; -DSDLF_PACKAGE_CONTACT="Name <mail>"
#
# The same commit gives the same bytes, with the same compiler and libraries.
. "$(dirname "$0")/common.sh"

folder=build/package
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2> /dev/null || echo 1700000000)}
export SOURCE_DATE_EPOCH
cmake -S . -B "$folder" -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX=/usr -DBUILD_SHARED_LIBS=ON -DSDLF_BUILD_TESTS=OFF "$@"
cmake --build "$folder" --parallel "$(nproc)"
rm -rf "$folder/packages"
generators=TGZ
if command -v dpkg-deb > /dev/null; then generators="DEB;TGZ"; fi
(cd "$folder" && cpack -G "$generators" -B packages && rm -rf packages/_CPack_Packages)
ls -l "$folder/packages"
if command -v lintian > /dev/null && [[ $generators == DEB* ]]; then
    lintian --fail-on error "$folder"/packages/*.deb
fi
