# SPDX-License-Identifier: MIT
# scripts/gpu-check.sh: commands within the time that is left, and the table of what came of them.
# shellcheck shell=bash disable=SC2154 # limit and logs are the script's, SECONDS the shell's

failed=0
cut=0
table=""

# row NAME OUTCOME SECONDS NOTE: one line of the table; FAILED and cut count.
row() {
    table+=$(printf '%-24s %-8s %5s s  %s' "$1" "$2" "$3" "$4")$'\n'
    case $2 in
    FAILED) failed=$((failed + 1)) ;;
    cut) cut=$((cut + 1)) ;;
    esac
}

# The last thing that happens.
summary() {
    printf '\n== Summary (%d s of %d)\n%s' "$SECONDS" "$limit" "$table"
    if [ "$failed" -gt 0 ]; then
        echo "$failed failed, $cut cut for want of time; the logs are in $logs/"
        exit 1
    fi
    if [ "$cut" -gt 0 ]; then
        echo "Nothing failed; $cut cut for want of time. Run it again, with --seconds N for more."
        exit 3
    fi
    echo "Nothing failed."
    exit 0
}

# left SECONDS: so many seconds, or how many there still are.
left() { echo $((limit - SECONDS < $1 ? (limit - SECONDS > 0 ? limit - SECONDS : 0) : $1)); }

# Is it the exit status of a command that `timeout` stopped, or had to kill?
was_stopped() { [ "$1" = 124 ] || [ "$1" = 137 ]; }

# within SECONDS LOG COMMAND...: run it, its output in LOG. Afterwards `outcome` is ok, FAILED, or cut where it was given less than
# its SECONDS and would have needed more; `spent` is what it took.
within() {
    local most=$1 log=$2 given begun=$SECONDS status=0
    given=$(left "$most")
    shift 2
    outcome=ok
    if [ "$given" -lt 2 ]; then
        echo "There was no time left." > "$log"
        outcome="cut"
    else
        run timeout --kill-after=5 "$given" "$@" > "$log" 2>&1 || status=$?
        if [ "$status" != 0 ]; then outcome=FAILED; fi
        if was_stopped "$status"; then
            echo "It was stopped after $given s." >> "$log"
            if [ "$given" -lt "$most" ]; then outcome="cut"; fi
        fi
    fi
    spent=$((SECONDS - begun))
}
