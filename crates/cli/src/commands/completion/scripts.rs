//! How does each shell ask for candidates? `PROGRAM` and `FUNCTION` are replaced.
//!
//! The answer ends with a line `:N`; where 4 is part of N, files are no candidates. Of `--flag=va` the
//! answer completes the value alone.

/// For bash, which shows no descriptions. It splits words at `=` and `:`, so they are put together
/// again before they are sent.
pub const BASH: &str = r#"# bash completion of PROGRAM; load it with: source <(PROGRAM completion bash)
__FUNCTION_complete() {
    local line word last prefix="" rest="${COMP_LINE:0:COMP_POINT}"
    local -i directive=0
    local -a words=()
    for word in "${COMP_WORDS[@]:0:COMP_CWORD+1}"; do
        if [[ ${#words[@]} -gt 0 && "$rest" != [[:space:]]* ]]; then
            words[${#words[@]}-1]+="$word"
        else
            words+=("$word")
        fi
        rest="${rest#"${rest%%[![:space:]]*}"}"
        rest="${rest#"$word"}"
    done
    last="${words[${#words[@]}-1]}"
    if [[ "$last" == -*=* && "$COMP_WORDBREAKS" != *=* ]]; then
        prefix="${last%%=*}="
    fi
    COMPREPLY=()
    while IFS= read -r line; do
        case "$line" in
            :*) directive="${line#:}" ;;
            *) COMPREPLY+=("$prefix$line") ;;
        esac
    done < <(PROGRAM __completeNoDesc "${words[@]:1}" 2>/dev/null)
    if (( directive & 4 )) && type compopt &>/dev/null; then
        compopt +o default
    fi
}
complete -o default -F __FUNCTION_complete PROGRAM
"#;

/// For zsh.
pub const ZSH: &str = r#"#compdef PROGRAM
# zsh completion of PROGRAM; load it after compinit with: source <(PROGRAM completion zsh)
_PROGRAM() {
    local -a candidates
    local line
    local -i directive=0
    for line in "${(@f)$(PROGRAM __complete "${(@Q)words[2,CURRENT]}" 2>/dev/null)}"; do
        if [[ "$line" == :* ]]; then
            directive="${line#:}"
        elif [[ -n "$line" ]]; then
            line="${line//:/\\:}"
            candidates+=("${line/$'\t'/:}")
        fi
    done
    if [[ "${words[CURRENT]}" == -*=* ]]; then
        compset -P '*='
    fi
    if (( ${#candidates} )); then
        _describe 'PROGRAM' candidates
    elif (( ! (directive & 4) )); then
        _files
    fi
}
if [[ "${funcstack[1]}" == "_PROGRAM" ]]; then
    _PROGRAM "$@"
else
    compdef _PROGRAM PROGRAM
fi
"#;

/// For fish.
pub const FISH: &str = r#"# fish completion of PROGRAM; load it with: PROGRAM completion fish | source
function __FUNCTION_complete
    set -l last (commandline -ct)
    set -l words (commandline -opc) "$last"
    set -l prefix (string match -r -- '^-[^=]*=' "$last")
    set -l answer (PROGRAM __complete $words[2..-1] 2>/dev/null)
    set -l candidates (string match -v -r -- '^:' $answer)
    if test (count $candidates) -eq 0; and test "$answer[-1]" = ":0"
        set candidates (__fish_complete_path (string replace -r -- '^-[^=]*=' '' "$last"))
    end
    for candidate in $candidates
        printf '%s\n' "$prefix$candidate"
    end
end
complete -c PROGRAM -f -a '(__FUNCTION_complete)'
"#;

/// For PowerShell.
pub const POWERSHELL: &str = r#"# PowerShell completion of PROGRAM
Register-ArgumentCompleter -Native -CommandName 'PROGRAM' -ScriptBlock {
    param($word, $line, $cursor)
    $words = @($line.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
    if (-not $word) { $words += '' }
    $prefix = if ($word -match '^(-[^=]*=)') { $Matches[1] } else { '' }
    & PROGRAM __complete @words 2>$null | Where-Object { $_ -notmatch '^:' } | ForEach-Object {
        $name, $about = $_ -split "`t", 2
        if (-not $about) { $about = $name }
        $whole = "$prefix$name"
        [System.Management.Automation.CompletionResult]::new($whole, $name, 'ParameterValue', $about)
    }
}
"#;
