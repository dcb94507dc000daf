export const SHELLS = ['bash', 'zsh', 'fish'] as const;
export type Shell = (typeof SHELLS)[number];

/**
 * What a shell sources. The scripts know no command: they ask `palestra __complete`, whose first line is `:files` for names of files, or
 * else each line is a value, a tab and a description.
 */
export const SCRIPTS: Record<Shell, string> = {
  bash: `# Completion of palestra for bash: source <(palestra completion bash)
_palestra() {
  local line current=\${COMP_WORDS[COMP_CWORD]}
  # Bash splits --option=value into three words.
  [[ $current == '=' ]] && current=
  COMPREPLY=()
  while IFS= read -r line; do
    if [[ $line == ':files' ]]; then
      compopt -o filenames 2>/dev/null
      while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$current")
      return
    fi
    COMPREPLY+=("\${line%%$'\\t'*}")
  done < <("\${COMP_WORDS[0]}" __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _palestra palestra
`,
  zsh: `#compdef palestra
# Completion of palestra for zsh: write it to a file _palestra in a folder of $fpath, or source <(palestra completion zsh)
_palestra() {
  local line
  local -a lines values
  lines=("\${(@f)$("\${words[1]}" __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ \${lines[1]} == ':files' ]]; then
    _files
    return
  fi
  for line in $lines; do
    values+=("\${\${line%%$'\\t'*}//:/\\\\:}:\${line#*$'\\t'}")
  done
  (( \${#values} )) && _describe palestra values
}
if [[ \${funcstack[1]} == _palestra ]]; then
  _palestra "$@"
else
  compdef _palestra palestra
fi
`,
  fish: `# Completion of palestra for fish: palestra completion fish > ~/.config/fish/completions/palestra.fish
function __palestra_complete
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l current (commandline -ct)
    set -l lines ($program __complete -- $words "$current" 2>/dev/null)
    if test "$lines[1]" = ':files'
        __fish_complete_path "$current"
    else
        printf '%s\\n' $lines
    end
end
complete -c palestra -f -a '(__palestra_complete)'
`,
};
