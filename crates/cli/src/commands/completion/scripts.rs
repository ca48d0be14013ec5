//! How does each shell ask for candidates? `PROGRAM` and `FUNCTION` are replaced.

/// For bash, which shows no descriptions.
pub const BASH: &str = r#"# bash completion of PROGRAM; load it with: source <(PROGRAM completion bash)
__FUNCTION_complete() {
    local line
    COMPREPLY=()
    while IFS= read -r line; do
        case "$line" in
            :*) ;;
            *) COMPREPLY+=("$line") ;;
        esac
    done < <(PROGRAM __completeNoDesc "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -o default -F __FUNCTION_complete PROGRAM
"#;

/// For zsh.
pub const ZSH: &str = r#"#compdef PROGRAM
# zsh completion of PROGRAM; load it with: source <(PROGRAM completion zsh)
_FUNCTION() {
    local -a candidates
    local line
    for line in "${(@f)$(PROGRAM __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
        [[ -z "$line" || "$line" == :* ]] && continue
        line="${line//:/\\:}"
        candidates+=("${line/$'\t'/:}")
    done
    _describe 'PROGRAM' candidates
}
compdef _FUNCTION PROGRAM
"#;

/// For fish.
pub const FISH: &str = r#"# fish completion of PROGRAM; load it with: PROGRAM completion fish | source
function __FUNCTION_complete
    set -l words (commandline -opc) (commandline -ct)
    PROGRAM __complete $words[2..-1] 2>/dev/null | string match -v -r '^:'
end
complete -c PROGRAM -f -a '(__FUNCTION_complete)'
"#;

/// For PowerShell.
pub const POWERSHELL: &str = r#"# PowerShell completion of PROGRAM
Register-ArgumentCompleter -Native -CommandName 'PROGRAM' -ScriptBlock {
    param($word, $line, $cursor)
    $words = @($line.CommandElements | Select-Object -Skip 1 | ForEach-Object { "$_" })
    if (-not $word) { $words += '' }
    & PROGRAM __complete @words 2>$null | Where-Object { $_ -notmatch '^:' } | ForEach-Object {
        $name, $about = $_ -split "`t", 2
        if (-not $about) { $about = $name }
        [System.Management.Automation.CompletionResult]::new($name, $name, 'ParameterValue', $about)
    }
}
"#;
