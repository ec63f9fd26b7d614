# SPDX-License-Identifier: MIT
# Selects the GEMM library of the cpu calculator, in addition to its own kernels.
#   SDLF_GEMM = auto (oneDNN, else a CBLAS library, else none), onednn, cblas, portable (none)
# Sets SDLF_GEMM_BACKEND (onednn, cblas or none: calculators/cpu/gemm_*.c) and SDLF_GEMM_LIBRARIES.

set(SDLF_GEMM auto CACHE STRING "Matrix product library: auto, onednn, cblas, portable (none)")
set_property(CACHE SDLF_GEMM PROPERTY STRINGS auto onednn cblas portable)
if(NOT SDLF_GEMM MATCHES "^(auto|onednn|cblas|portable)$")
    message(FATAL_ERROR "SDLF_GEMM is '${SDLF_GEMM}'; it may be auto, onednn, cblas or portable.")
endif()

set(SDLF_GEMM_BACKEND none)
set(SDLF_GEMM_LIBRARIES "")

if(SDLF_GEMM MATCHES "^(auto|onednn)$")
    # Not found by its CMake package, which requires the OpenCL headers.
    find_path(SDLF_ONEDNN_HEADERS oneapi/dnnl/dnnl_version.h)
    find_library(SDLF_ONEDNN_LIBRARY libdnnl.so)
    mark_as_advanced(SDLF_ONEDNN_HEADERS SDLF_ONEDNN_LIBRARY)
    if(SDLF_ONEDNN_HEADERS AND SDLF_ONEDNN_LIBRARY)
        # Loaded on first use, since few programs need it: the library and its dependencies take 4 MB.
        add_library(sdlf_onednn INTERFACE IMPORTED)
        target_include_directories(sdlf_onednn INTERFACE "${SDLF_ONEDNN_HEADERS}")
        set(SDLF_GEMM_BACKEND onednn)
        set(SDLF_GEMM_LIBRARIES $<BUILD_INTERFACE:sdlf_onednn> ${CMAKE_DL_LIBS})
        sdlf_exports(LIBRARY -ldl)
        get_filename_component(found "${SDLF_ONEDNN_LIBRARY}" REALPATH)
        target_compile_definitions(sdlf_onednn INTERFACE "SDLF_ONEDNN_PATH=\"${found}\"")
        file(STRINGS "${SDLF_ONEDNN_HEADERS}/oneapi/dnnl/dnnl_version.h" version REGEX "define DNNL_VERSION_(MAJOR|MINOR|PATCH)")
        string(REGEX REPLACE "[^0-9]+([0-9]+)[^0-9]+([0-9]+)[^0-9]+([0-9]+).*" "\\1.\\2.\\3" SDLF_ONEDNN_VERSION "${version}")
        sdlf_summary("GEMM library" "oneDNN ${SDLF_ONEDNN_VERSION}")
    endif()
endif()
if(SDLF_GEMM_BACKEND STREQUAL "none" AND SDLF_GEMM MATCHES "^(auto|cblas)$")
    pkg_check_modules(CBLAS QUIET IMPORTED_TARGET openblas)
    if(NOT CBLAS_FOUND)
        pkg_check_modules(CBLAS QUIET IMPORTED_TARGET cblas)
    endif()
    if(CBLAS_FOUND)
        set(SDLF_GEMM_BACKEND cblas)
        set(SDLF_GEMM_LIBRARIES PkgConfig::CBLAS)
        sdlf_exports(MODULE ${CBLAS_MODULE_NAME} CMAKE
            "find_dependency(PkgConfig)\npkg_check_modules(CBLAS QUIET IMPORTED_TARGET ${CBLAS_MODULE_NAME})\nsdlf_need(CBLAS_FOUND ${CBLAS_MODULE_NAME})")
        sdlf_summary("GEMM library" "${CBLAS_MODULE_NAME} ${CBLAS_VERSION}")
    endif()
endif()
if(SDLF_GEMM_BACKEND STREQUAL "none")
    if(NOT SDLF_GEMM MATCHES "^(auto|portable)$")
        message(FATAL_ERROR "SDLF_GEMM is '${SDLF_GEMM}', but that library was not found. On Debian and Ubuntu: "
                            "apt-get install libdnnl-dev (onednn) or libopenblas-dev (cblas).")
    endif()
    sdlf_summary("GEMM library" "none: the cpu calculator's own kernels")
endif()
