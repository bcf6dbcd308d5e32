/** The shells whose command lines can be completed. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** The flag with which a script asks for the candidates; the words of the command line follow, the unfinished one last. */
export const COMPLETION_FLAG = "--get-yargs-completions";

// yargs describes its candidates, as name:description, where it takes the shell for zsh.
const NAMES_ONLY = "env -u ZSH_NAME SHELL=/bin/bash";
const DESCRIBED = "env ZSH_NAME=zsh";

/** The completion script of each shell. Where nothing of ours fits, the shell completes files. */
export const COMPLETION_SCRIPTS: Record<(typeof SHELLS)[number], string> = {
  bash: `_gen_operator() {
  local IFS=$'\\n'
  COMPREPLY=($(compgen -W "$(${NAMES_ONLY} gen-operator ${COMPLETION_FLAG} "\${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}"))
}
complete -o bashdefault -o default -F _gen_operator gen-operator
`,
  zsh: `#compdef gen-operator
_gen_operator() {
  local -a candidates
  candidates=("\${(@f)$(${DESCRIBED} gen-operator ${COMPLETION_FLAG} "\${(@)words[1,CURRENT]}" 2>/dev/null)}")
  if [[ -n "\${candidates[1]}" ]]; then _describe gen-operator candidates; else _files; fi
}
compdef _gen_operator gen-operator
`,
  fish: `function __gen_operator_candidates
  set -l tokens (commandline -opc) (commandline -ct)
  ${DESCRIBED} gen-operator ${COMPLETION_FLAG} $tokens 2>/dev/null | string replace -r '(?<!\\\\\\\\):' '\\t'
end
complete -c gen-operator -a '(__gen_operator_candidates)'
`,
};
