# SPDX-License-Identifier: MIT
# A toolchain file: the musl C library, from Debian's package musl-tools. Libraries are searched in build/musl-root, which
# scripts/musl-libraries.sh fills.
set(CMAKE_C_COMPILER musl-gcc)
get_filename_component(sdlf_root "${CMAKE_CURRENT_LIST_DIR}/../build/musl-root" ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH "${sdlf_root}")
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_LIBDIR} "${sdlf_root}/lib/pkgconfig")
