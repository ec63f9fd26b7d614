# SPDX-License-Identifier: MIT
# What zsh makes of lines when the tab key is pressed behind them, in a shell of its own in a pseudo-terminal.
#
#   zsh -f completions.zsh FOLDER LINE...      the folder with _sdlf; prints each line as it is then
zmodload zsh/zpty
zpty shell "zsh -f -i"
trap 'zpty -d shell' EXIT
# The last word shows the line and takes it away. What is typed is echoed, and so the mark of the end comes twice.
zpty -w shell "PS1='' PS2='' RPS1=''; unsetopt zle_bracketed_paste; setopt no_auto_menu no_beep; fpath=(${(q)1} \$fpath)
autoload -Uz compinit; compinit -u -D; show() { print -r -- \"<<\$BUFFER>>\"; BUFFER=''; }; zle -N show; bindkey '^X' show; print READY"
zpty -r shell said "*READY*READY*"
for line in "${@:2}"; do
    zpty -w -n shell "$line"$'\t\x18'
    zpty -r shell said "*<<*>>*"
    said=${said##*<<}
    print -r -- "${${said%%>>*}%% }"
done
