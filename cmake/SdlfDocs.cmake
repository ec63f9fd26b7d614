# SPDX-License-Identifier: MIT
# The target docs: API pages from the public headers, in api/html of the build folder, if Doxygen is found. Warnings are errors.
find_program(DOXYGEN doxygen)
mark_as_advanced(DOXYGEN)
if(DOXYGEN)
    configure_file("${PROJECT_SOURCE_DIR}/cmake/Doxyfile.in" "${PROJECT_BINARY_DIR}/Doxyfile" @ONLY)
    add_custom_target(docs COMMAND "${DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile" COMMENT "Pages of the API" VERBATIM)
    sdlf_summary("docs" "API pages by Doxygen")
else()
    sdlf_summary("docs" "off: doxygen was not found")
endif()
