# SPDX-License-Identifier: MIT
# Manual pages and shell completions. The program prints the pages from its option tables, so they are created only if it can be run.
install(FILES apps/completions/sdlf.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME sdlf COMPONENT program)
install(FILES apps/completions/_sdlf DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions COMPONENT program)
install(FILES apps/completions/sdlf.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT program)

if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
    sdlf_summary("manual" "off: the program, which prints it, cannot be run here")
    return()
endif()
find_program(SDLF_GZIP gzip)
set(manual "${PROJECT_BINARY_DIR}/man")
add_custom_command(OUTPUT "${manual}.made"
    COMMAND ${CMAKE_COMMAND} "-DSDLF=${CMAKE_CROSSCOMPILING_EMULATOR};$<TARGET_FILE:sdlf_program>" -DFOLDER=${manual} $<$<BOOL:${SDLF_GZIP}>:-DGZIP=${SDLF_GZIP}>
        -P "${PROJECT_SOURCE_DIR}/cmake/manual-pages.cmake"
    COMMAND ${CMAKE_COMMAND} -E touch "${manual}.made"
    DEPENDS sdlf_program "${PROJECT_SOURCE_DIR}/cmake/manual-pages.cmake" "${PROJECT_SOURCE_DIR}/scripts/get-mnist.1" VERBATIM)
add_custom_target(sdlf_manual ALL DEPENDS "${manual}.made")
install(DIRECTORY "${manual}/" DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT program)
