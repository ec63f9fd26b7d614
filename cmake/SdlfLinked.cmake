# SPDX-License-Identifier: MIT
# SDLF_LINKED: the libraries that are linked into the program, or that it loads, for `sdlf --version --json`. A row each: name|version|licence, an
# SPDX expression. Versions are those that this build has found; of the GNU C Library the program asks (apps/info/build.c). No version: the
# library does not say it.
set(SDLF_LINKED "zlib|${ZLIB_VERSION_STRING}|Zlib" "jansson|${JANSSON_VERSION}|MIT")
set(mpi "MPI|${MPI_C_VERSION}|") # of which there are several
if("${MPI_C_LIBRARIES} ${MPI_C_INCLUDE_DIRS}" MATCHES "openmpi|ompi")
    set(mpi "Open MPI||BSD-3-Clause-Open-MPI")
    find_file(SDLF_MPI_VERSION_HEADER mpi.h PATHS ${MPI_C_INCLUDE_DIRS} NO_DEFAULT_PATH)
    mark_as_advanced(SDLF_MPI_VERSION_HEADER)
    if(SDLF_MPI_VERSION_HEADER)
        file(STRINGS "${SDLF_MPI_VERSION_HEADER}" version REGEX "^#define OMPI_(MAJOR|MINOR|RELEASE)_VERSION ")
        string(REGEX REPLACE "[^0-9]+([0-9]+)[^0-9]+([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2.\\3" version "${version}")
        set(mpi "Open MPI|${version}|BSD-3-Clause-Open-MPI")
    endif()
elseif("${MPI_C_LIBRARIES} ${MPI_C_INCLUDE_DIRS}" MATCHES "mpich")
    find_file(SDLF_MPI_VERSION_HEADER mpi.h PATHS ${MPI_C_INCLUDE_DIRS} NO_DEFAULT_PATH)
    mark_as_advanced(SDLF_MPI_VERSION_HEADER)
    set(version "")
    if(SDLF_MPI_VERSION_HEADER)
        file(STRINGS "${SDLF_MPI_VERSION_HEADER}" version REGEX "^#define MPICH_VERSION ")
        string(REGEX REPLACE ".*\"(.*)\".*" "\\1" version "${version}")
    endif()
    set(mpi "MPICH|${version}|mpich2")
endif()
foreach(row "PNG_FOUND;libpng|${PNG_VERSION_STRING}|libpng-2.0" "TURBOJPEG_FOUND;libjpeg-turbo|${TURBOJPEG_VERSION}|IJG AND BSD-3-Clause AND Zlib"
        "PROTOBUF_C_FOUND;protobuf-c|${PROTOBUF_C_VERSION}|BSD-2-Clause" "MICROHTTPD_FOUND;libmicrohttpd|${MICROHTTPD_VERSION}|LGPL-2.1-or-later"
        "SDLF_MPI_ENABLED;${mpi}" "SDLF_CUDA_ENABLED;CUDA Toolkit|${CMAKE_CUDA_COMPILER_VERSION}|LicenseRef-NVIDIA"
        "SDLF_NCCL_ENABLED;NCCL|${SDLF_NCCL_VERSION}|BSD-3-Clause" "SDLF_CUDNN_ENABLED;cuDNN|${SDLF_CUDNN_VERSION}|LicenseRef-NVIDIA")
    list(GET row 0 found)
    list(GET row 1 library)
    if(${found})
        list(APPEND SDLF_LINKED "${library}")
    endif()
endforeach()
if(SDLF_GEMM_BACKEND STREQUAL "onednn")
    list(APPEND SDLF_LINKED "oneDNN|${SDLF_ONEDNN_VERSION}|Apache-2.0")
    # and what it computes with in several threads
    execute_process(COMMAND "${CMAKE_READELF}" -d "${SDLF_ONEDNN_LIBRARY}" OUTPUT_VARIABLE needed ERROR_QUIET)
    foreach(row "libgomp;libgomp||GPL-3.0-or-later WITH GCC-exception-3.1" "lib(omp|iomp5);LLVM OpenMP||Apache-2.0 WITH LLVM-exception"
            "libtbb;oneTBB||Apache-2.0")
        list(GET row 0 name)
        list(GET row 1 library)
        if(needed MATCHES "NEEDED[^\n]*\\[${name}\\.so")
            list(APPEND SDLF_LINKED "${library}")
        endif()
    endforeach()
elseif(SDLF_GEMM_BACKEND STREQUAL "cblas")
    set(licence "") # of the reference, and of others
    if(CBLAS_MODULE_NAME STREQUAL "openblas")
        set(licence BSD-3-Clause)
    endif()
    list(APPEND SDLF_LINKED "${CBLAS_MODULE_NAME}|${CBLAS_VERSION}|${licence}")
endif()
include(CheckSymbolExists)
check_symbol_exists(__GLIBC__ features.h SDLF_HAVE_GLIBC)
if(SDLF_HAVE_GLIBC)
    list(APPEND SDLF_LINKED "GNU C Library||LGPL-2.1-or-later")
else()
    list(APPEND SDLF_LINKED "C Library||") # musl (MIT), say
endif()
