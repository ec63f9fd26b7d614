# SPDX-License-Identifier: MIT
# Writes the manual pages that the program (run by an emulator, if it needs one) prints: cmake -DSDLF=[EMULATOR;]PROGRAM -DFOLDER=FOLDER [-DGZIP=PROGRAM] -P manual-pages.cmake
#
# The program lists its commands, and each command its parts, so that no page is missing.
file(REMOVE_RECURSE "${FOLDER}")
file(MAKE_DIRECTORY "${FOLDER}")

function(print_page name)
    execute_process(COMMAND ${SDLF} ${ARGN} --help=man OUTPUT_FILE "${FOLDER}/${name}.1" RESULT_VARIABLE code ERROR_VARIABLE said)
    if(NOT code EQUAL 0)
        message(FATAL_ERROR "${name}.1: ${said}")
    endif()
    file(SIZE "${FOLDER}/${name}.1" size)
    if(size EQUAL 0) # a command that only groups others
        file(REMOVE "${FOLDER}/${name}.1")
    elseif(GZIP)
        execute_process(COMMAND "${GZIP}" -9nf "${FOLDER}/${name}.1" COMMAND_ERROR_IS_FATAL ANY)
    endif()
endfunction()

# Sets the words that can come next.
function(ask_for result)
    execute_process(COMMAND ${SDLF} complete ${ARGN} "" OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "[^\n]+" lines "${said}")
    set(words "")
    foreach(line IN LISTS lines)
        if(line MATCHES "^([a-z]+)\t")
            list(APPEND words "${CMAKE_MATCH_1}")
        endif()
    endforeach()
    set(${result} "${words}" PARENT_SCOPE)
endfunction()

print_page(sdlf)
ask_for(commands)
foreach(command IN LISTS commands)
    print_page("sdlf-${command}" ${command})
    ask_for(parts ${command})
    foreach(part IN LISTS parts)
        print_page("sdlf-${command}-${part}" ${command} ${part})
    endforeach()
endforeach()

# The page of an installed script.
file(COPY_FILE "${CMAKE_CURRENT_LIST_DIR}/../scripts/get-mnist.1" "${FOLDER}/sdlf-get-mnist.1")
if(GZIP)
    execute_process(COMMAND "${GZIP}" -9nf "${FOLDER}/sdlf-get-mnist.1" COMMAND_ERROR_IS_FATAL ANY)
endif()
