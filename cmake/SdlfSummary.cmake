# SPDX-License-Identifier: MIT
# The results of configuring, collected on the way and printed as a table at the end.

# sdlf_summary(FEATURE TEXT): adds a row. TEXT is what was found, or "off" with the reason and the remedy.
function(sdlf_summary feature text)
    string(LENGTH "${feature}" length)
    math(EXPR missing "14 - ${length}")
    string(REPEAT " " ${missing} padding)
    set_property(GLOBAL APPEND_STRING PROPERTY SDLF_SUMMARY "\n--   ${feature}${padding}${text}")
endfunction()

function(sdlf_print_summary)
    get_property(rows GLOBAL PROPERTY SDLF_SUMMARY)
    message(STATUS "${PROJECT_NAME} ${PROJECT_VERSION}${rows}")
endfunction()
