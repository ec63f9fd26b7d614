# SPDX-License-Identifier: MIT
# The CUDA language: sets SDLF_CUDA_ENABLED. AUTO enables it if nvcc and its libraries are present and work; ON requires
# them; OFF does not look. Architectures are those of CMAKE_CUDA_ARCHITECTURES, else of the environment variable
# CUDAARCHS, else of this machine's GPU, or, without a GPU, every generation from Turing on.
#
# cuBLAS is loaded when a calculator is opened (calculators/cuda/gemm/blas.h). With SDLF_CUDA_STATIC the runtime library is linked
# statically: programs then also start on machines without CUDA. (Tests count the allocations of everything linked into them, so the kernel
# tests need the shared library.)
#
# nvcc calls g++ (or CMAKE_CUDA_HOST_COMPILER) for the host part of .cu files, whichever compiler the C files use; the
# two interface through plain C functions.

option(SDLF_CUDA_STATIC "Link CUDA's runtime library statically" OFF)
set(SDLF_CUDART cudart)
if(SDLF_CUDA_STATIC)
    set(SDLF_CUDART cudart_static)
endif()
set(SDLF_CUDA_ENABLED OFF)
if(NOT SDLF_CUDA MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "SDLF_CUDA is '${SDLF_CUDA}'; it may be AUTO, ON or OFF.")
elseif(SDLF_CUDA STREQUAL "OFF")
    sdlf_summary("CUDA" "off (SDLF_CUDA)")
elseif(SDLF_SANITIZE AND SDLF_CUDA STREQUAL "ON")
    message(FATAL_ERROR "SDLF_SANITIZE and SDLF_CUDA=ON exclude each other: AddressSanitizer and the CUDA driver want the "
                        "same addresses. Sanitize with SDLF_CUDA=OFF; scripts/gpu-check.sh checks kernels with "
                        "compute-sanitizer.")
elseif(SDLF_SANITIZE)
    sdlf_summary("CUDA" "off: not together with SDLF_SANITIZE")
else()
    include(CheckLanguage)
    check_language(CUDA)
    set(missing "no nvcc that works (set PATH or CUDACXX)")
    if(CMAKE_CUDA_COMPILER)
        find_package(CUDAToolkit QUIET)
        set(missing "")
        foreach(library ${SDLF_CUDART} cublas cublasLt)
            if(NOT TARGET CUDA::${library})
                set(missing "nvcc is there, but not the library ${library}")
            endif()
        endforeach()
        if(CUDAToolkit_VERSION VERSION_LESS 12.0)
            set(missing "the CUDA Toolkit is ${CUDAToolkit_VERSION}, older than 12.0")
        endif()
    endif()
    if(NOT missing)
        if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
            execute_process(COMMAND nvidia-smi --query-gpu=compute_cap --format=csv,noheader
                OUTPUT_VARIABLE found RESULT_VARIABLE failed ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
            string(REGEX MATCHALL "[0-9]+\\.[0-9]+" found "${found}")
            string(REPLACE "." "" found "${found}")
            list(REMOVE_DUPLICATES found)
            if(failed OR NOT found)
                set(found 75-real 80-real 86-real 89-real 90)
                if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)
                    set(found 75-real 80-real 86-real 89-real 90-real 100-real 120)
                endif()
            endif()
            set(CMAKE_CUDA_ARCHITECTURES "${found}" CACHE STRING "GPU architectures to build for")
        endif()
        enable_language(CUDA)
        # CMake 3.25 does not know that nvcc 13 has C++20; without guarded statics and exceptions no C++ runtime is needed
        string(APPEND CMAKE_CUDA_FLAGS " -std=c++20 -Xcompiler=-fno-threadsafe-statics,-fno-exceptions")
        # headers shared by C and C++ also rely on omitted members of designated initialisers being zero
        target_compile_options(sdlf_build_flags INTERFACE
            $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra,-Wshadow,-Wno-missing-field-initializers>)
        if(SDLF_WERROR)
            target_compile_options(sdlf_build_flags INTERFACE
                "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings -Xcompiler=-Werror>")
        endif()
        set(SDLF_CUDA_ENABLED ON)
        get_filename_component(library_folder "${CUDA_cublas_LIBRARY}" DIRECTORY)
        sdlf_exports(CMAKE "find_dependency(CUDAToolkit)" LIBRARY "-L${library_folder}" -l${SDLF_CUDART} -lrt -ldl)
        string(REPLACE ";" " " found "${CMAKE_CUDA_ARCHITECTURES}")
        sdlf_summary("CUDA" "${CMAKE_CUDA_COMPILER_VERSION} (${CMAKE_CUDA_COMPILER}) for ${found}")
    elseif(SDLF_CUDA STREQUAL "ON")
        message(FATAL_ERROR "SDLF_CUDA=ON, but CUDA cannot be used: ${missing}.")
    else()
        sdlf_summary("CUDA" "off: ${missing}")
    endif()
endif()
