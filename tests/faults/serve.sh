#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `sdlf serve` with a visitor, as a command that ends: a page and a picture's classes are asked for, then the server gets SIGTERM. Only the server
# runs beneath what SDLF_PRELOAD names. What it prints, and checksums of its answers, go to standard output. An answer that does not come, or is
# not 200, is a failure that this says.
#
#   serve.sh SDLF PICTURE WORD...
set -u
sdlf=$1 picture=$2 said=$(mktemp) server=
shift 2
trap 'kill -KILL $server 2> /dev/null; rm -f "$said"' EXIT

fail() {
    echo "$0: $1" >&2
    exit 1
}

LD_PRELOAD=${SDLF_PRELOAD:-} "$sdlf" "$@" > "$said" &
server=$!
address=
until [ -n "$address" ]; do # until it says where it is; it may end without
    kill -0 "$server" 2> /dev/null || break
    address=$(sed -n 's|^http://\(127.0.0.1:[0-9]*/[0-9a-f]*/\)$|\1|p' "$said")
    sleep 0.02
done

# ask METHOD PAGE FILE: the answer's first line and its body
ask() {
    exec 3<> "/dev/tcp/127.0.0.1/$(sed 's|.*:\([0-9]*\)/.*|\1|' <<< "$address")" || return
    printf '%s /%s%s HTTP/1.0\r\nHost: %s\r\nContent-Length: %d\r\n\r\n' "$1" "${address#*/}" "$2" "${address%%/*}" "$(stat -c %s "$3")" >&3
    cat "$3" >&3
    cat <&3 | tr -d '\r' | sed -n '1p; /^$/,$p'
    exec 3>&-
}

wrong=
if [ -n "$address" ]; then
    for request in "GET /dev/null" "GET page.js /dev/null" "POST classify $picture"; do
        read -r method page file <<< "$request"
        [ -n "$file" ] || file=$page page=
        answer=$(ask "$method" "$page" "$file" 2> /dev/null)
        case $answer in
        HTTP/1.[01]\ 200*) echo "$page: ${answer%%$'\n'*}, $(cksum <<< "$answer")" ;;
        *) wrong="$method $page: ${answer:-no answer}" ;;
        esac
    done
    kill -TERM "$server" 2> /dev/null
fi
status=0
wait "$server" || status=$?
cat "$said"
[ "$status" -ne 143 ] || status=0 # SIGTERM, as it should be
[ "$status" -eq 0 ] || exit "$status"
[ -z "$wrong" ] || fail "${wrong%%$'\n'*}"
