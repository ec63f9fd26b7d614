#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What shells offer: commands, options, values, files. zsh and fish where they are there.
#
#   completions.sh SDLF FOLDER      the sdlf program, the folder with the scripts
set -euo pipefail
sdlf=$1
here=$2
tests=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
PATH=$(dirname "$sdlf"):$PATH
cd "$(mktemp -d)"
touch "a file.png"

expect() { # expect WHAT FOUND EXPECTED
    [ "$2" = "$3" ] || { printf '%s: expected "%s", found "%s"\n' "$1" "$3" "$2" && exit 1; }
}

complete() { :; } # what the script does outside of a shell that completes
compopt() { :; }
. "$here/sdlf.bash"
offers() { # of the last of these words
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    _sdlf
    printf '%s\n' "${COMPREPLY[*]}"
}
expect "a command" "$(offers sdlf tra)" "train"
expect "an option" "$(offers sdlf train --augment-ro)" "--augment-rotate"
expect "an option of all" "$(offers sdlf info --conf)" "--config"
expect "a choice" "$(offers sdlf train --schedule lin)" "linear"
expect "an optimizer" "$(offers sdlf train --net x --optimizer adamw)" "adamw"
expect "a benchmark" "$(offers sdlf bench place)" "placement"
expect "an option of a benchmark" "$(offers sdlf bench conv --sha)" "--shape"
expect "a file" "$(offers sdlf predict "a ")" "a file.png"
expect "a file for an option" "$(offers sdlf predict --weights "a ")" "a file.png"
expect "nothing" "$(offers sdlf train --epochs "")" ""
expect "an unknown command" "$(offers sdlf nothing --o)" ""

# The same words in the other shells: LINE, what stands there with the one completion that there is.
lines=("sdlf tra" "sdlf train --augment-ro" "sdlf info --conf" "sdlf train --schedule lin" "sdlf train --net x --optimizer adamw" "sdlf bench place"
    "sdlf bench conv --sha" "sdlf nothing --o")
wanted=("sdlf train" "sdlf train --augment-rotate" "sdlf info --config" "sdlf train --schedule linear" "sdlf train --net x --optimizer adamw"
    "sdlf bench placement" "sdlf bench conv --shape" "sdlf nothing --o")

if command -v fish > /dev/null; then
    fish -n "$here/sdlf.fish"
    # one word for each line, without its description; nothing where there is none
    mapfile -t found < <(HOME=$PWD fish --no-config -c "source $here/sdlf.fish; for line in \$argv; echo (complete -C \$line | string replace -r '\t.*' ''); end" \
        "${lines[@]}" "sdlf predict a" "sdlf predict --weights a")
    for i in "${!lines[@]}"; do
        word=${wanted[i]##* }
        [ "${wanted[i]}" != "${lines[i]}" ] || [[ $word == adamw ]] || word=""
        expect "fish: ${lines[i]}" "${found[i]}" "$word"
    done
    expect "fish: a file" "${found[-2]}" "a file.png"
    expect "fish: a file for an option" "${found[-1]}" "a file.png"
else
    echo "There is no fish: its completion was not tried."
fi

if command -v zsh > /dev/null; then
    zsh -n "$here/_sdlf"
    mapfile -t found < <(HOME=$PWD zsh -f "$tests/completions.zsh" "$here" "${lines[@]}" "sdlf predict a" "sdlf predict --weights a")
    for i in "${!lines[@]}"; do expect "zsh: ${lines[i]}" "${found[i]-}" "${wanted[i]}"; done
    expect "zsh: a file" "${found[-2]}" 'sdlf predict a\ file.png'
    expect "zsh: a file for an option" "${found[-1]}" 'sdlf predict --weights a\ file.png'
else
    echo "There is no zsh: its completion was not tried."
fi
echo "Commands, options, values and files are offered."
