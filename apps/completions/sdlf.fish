# fish completion for sdlf: the program itself says what can come next.
function __sdlf_complete
    set -l words (commandline -opc)
    set -l found ($words[1] complete $words[2..-1] (commandline -ct) 2> /dev/null)
    for line in $found
        if test "$line" = files
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c sdlf -f -a '(__sdlf_complete)'
