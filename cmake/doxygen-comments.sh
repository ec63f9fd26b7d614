#!/bin/sh
# SPDX-License-Identifier: MIT
# doxygen-comments.sh HEADER: print the header with its comments marked for Doxygen: the first one documents the file, one behind a member
# that member, and any other what follows it; headings between dashes are left unchanged.
sed -e '1s,^/\* ,/** @file\n * ,; t' -e 's,^\( *\)/\* \([^-]\),\1/** \2,; t' -e 's:\([;,{] *\)/\* :\1/**< :' "$1"
