#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Do the documents name what is there? Links and their headings, files of the tree, commands of the program and their options,
# algorithms.
#
#   check.sh FOLDER PROGRAM      the project's folder, the sdlf program
set -euo pipefail
cd "$1"
sdlf=$2
failed=0
documents=(README.md CONTRIBUTING.md SECURITY.md CHANGELOG.md docs/README.md docs/guides/*.md docs/reference/*.md docs/notebook/*.md)

wrong() {
    printf '%s\n' "$1"
    failed=$((failed + 1))
}

# A document's headings as the names of its anchors.
anchors() {
    sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' | sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

links() {
    local from=$1 link file anchor
    while read -r link; do
        case $link in *://*) continue ;; esac
        file=${link%%#*}
        anchor=""
        [ "$file" = "$link" ] || anchor=${link#*#}
        file=$(dirname "$from")/${file:-$(basename "$from")}
        [ -e "$file" ] || wrong "$from: the link $link leads nowhere"
        [ -z "$anchor" ] || [ ! -f "$file" ] || grep -qxF "$anchor" <<< "$(anchors "$file")" || wrong "$from: $link: no such heading"
    done < <(sed '/^```/,/^```/d; /^    /d' "$from" | grep -o '](\([^)]*\))' | sed 's/^](//; s/)$//')
}

# Files of the tree, by their path from its top or among the headers. The walk-throughs make files: those are not looked for.
files() {
    local from=$1 path
    case $from in docs/guides/add-a-*) return ;; esac
    while read -r path; do
        [ -e "$path" ] || [ -e "framework/include/sdlf/$path" ] || [ -e "$(dirname "$from")/$path" ] ||
            wrong "$from: there is no $path"
    done < <(grep -oE '(^|[` ])(framework|layers|calculators|communicators|datasets|graphs|apps|lab|tests|scripts|docs|operations)/[A-Za-z0-9_/.-]*\.[a-z]+\b' "$from" |
        sed 's/^[` ]//' | sort -u)
}

# Sources named without their folder, in the page that says where things are.
sources() {
    local name
    while read -r name; do
        [ -n "$(find framework layers calculators communicators datasets graphs apps lab tests -name "$name" -print -quit)" ] ||
            wrong "$1: there is no file $name"
    done < <(grep -oE '`[A-Za-z0-9_]+\.(c|h|cu|cuh)`' "$1" | tr -d '`' | grep -v '^NAME' | sort -u)
}

# The help text of "bench epoch"; kept, since starting the program for each option would take long.
declare -A texts
help_of() {
    local words
    read -ra words <<< "$1"
    [ -n "${texts[$1]:-}" ] || texts[$1]=$("$sdlf" "${words[@]}" --help 2> /dev/null || true)
    printf '%s\n' "${texts[$1]}"
}

# Command lines: "sdlf COMMAND [NAME] ... --option"; "from sdlf import ..." is Python.
commands() {
    local from=$1 line word second option
    while read -r line; do
        read -r _ word second _ <<< "$line"
        case $word in import | COMMAND | help | program | plan | --help | --version | -h | "") continue ;; esac
        [ -n "$(help_of "$word")" ] || { wrong "$from: there is no command: $line" && continue; }
        case $word-$second in
        bench-*.onnx) word="bench model" ;;
        bench-[a-z]* | gcn-[a-z]*) word="$word ${second%%[^a-z]*}" ;;
        esac
        [ -n "$(help_of "$word")" ] || { wrong "$from: there is no such command: $line" && continue; }
        while read -r option; do
            grep -qE -- "(^|[ ,])$option( |=|,|\$)" <<< "$(help_of "$word")" || wrong "$from: sdlf $word has no $option"
        done < <(grep -oE -- ' --[a-z][a-z0-9-]*' <<< "$line" | tr -d ' ')
    done < <(grep -oE '(^|[` ])sdlf [a-z-][^`#|]*' "$from" | sed -E 's/^[` ]//; s/ (and|or|in|of|with|says?) .*//' | grep -E '^sdlf [a-z]+( |$)')
}

# What stands behind --conv-algorithm and --gemm-algorithm is a name in the table of a calculator, or of the lab.
algorithms() {
    local from=$1 name
    while read -r name; do
        name=${name##*[ :]}
        grep -rqF --include='*.c' "\"$name\"" calculators lab || wrong "$from: no calculator has the algorithm $name"
    done < <(grep -oE -- '--(conv|gemm)-algorithm (cuda:|cpu:|cudnn:)?[a-z][a-z0-9-]*' "$from" | sort -u)
}

sources docs/guides/finding.md
for document in "${documents[@]}"; do
    links "$document"
    files "$document"
    commands "$document"
    algorithms "$document"
    case $document in
    docs/*/*) grep -qF "(${document#docs/}" docs/README.md || wrong "docs/README.md does not list $document" ;;
    esac
done
[ "$failed" -eq 0 ] || { echo "$failed wrong" && exit 1; }
echo "${#documents[@]} documents name what is there."
