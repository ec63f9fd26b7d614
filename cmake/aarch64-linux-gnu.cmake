# SPDX-License-Identifier: MIT
# A toolchain file: cross-compile for 64-bit ARM with Debian's packages gcc-aarch64-linux-gnu and qemu-user, which runs the tests.
# Libraries are searched in build/aarch64-root, which scripts/aarch64-libraries.sh fills.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
get_filename_component(sdlf_root "${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-root" ABSOLUTE)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH "${sdlf_root}" /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
    set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${sdlf_root}")
set(ENV{PKG_CONFIG_LIBDIR} "${sdlf_root}/usr/lib/aarch64-linux-gnu/pkgconfig")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,-rpath-link,${sdlf_root}/usr/lib/aarch64-linux-gnu")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=${sdlf_root}/usr/lib/aarch64-linux-gnu")
