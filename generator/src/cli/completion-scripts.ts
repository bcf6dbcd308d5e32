/** Shells with a completion script. */
export const SHELLS = ["bash", "zsh", "fish"] as const;

/** The flag with which a completion script requests candidates. The words of the command line follow, the incomplete one last. */
export const COMPLETION_FLAG = "--get-yargs-completions";

// yargs prints candidates as name:description if the environment looks like zsh.
const NAMES_ONLY = "env -u ZSH_NAME SHELL=/bin/bash";
const DESCRIBED = "env ZSH_NAME=zsh";

// Uses the program installed in the current project, or else a global one. Never runs npx, which may prompt for an installation.
const FIND_PROGRAM = `_gen_operator_program() {
  local folder="$PWD"
  while true; do
    if [[ -x "$folder/node_modules/.bin/gen-operator" ]]; then
      printf '%s' "$folder/node_modules/.bin/gen-operator"
      return
    fi
    if [[ -z "$folder" ]]; then break; fi
    folder="\${folder%/*}"
  done
  command -v gen-operator
}
`;

/** Completion scripts for `gen-operator` and `npx gen-operator`, by shell. Without candidates, the shell completes file names. */
export const COMPLETION_SCRIPTS: Record<(typeof SHELLS)[number], string> = {
  bash: `${FIND_PROGRAM}_gen_operator() {
  local IFS=$'\\n' first=0 program="\${COMP_WORDS[0]}" typed="\${COMP_WORDS[COMP_CWORD]}" candidate
  COMPREPLY=()
  if [[ "\${program##*/}" == npx ]]; then
    first=1
    while [[ "\${COMP_WORDS[first]}" == -* ]]; do first=$((first + 1)); done
    if [[ "\${COMP_WORDS[first]}" != gen-operator || $first -ge $COMP_CWORD ]]; then return; fi
    program="$(_gen_operator_program)"
  fi
  if [[ "$typed" == "=" ]]; then typed=""; fi
  while read -r candidate; do
    if [[ -n "$candidate" && "$candidate" == "$typed"* ]]; then COMPREPLY+=("$candidate"); fi
  done < <(${NAMES_ONLY} "$program" ${COMPLETION_FLAG} "\${COMP_WORDS[@]:first:COMP_CWORD+1-first}" 2>/dev/null)
}
complete -o bashdefault -o default -F _gen_operator gen-operator
complete -p npx >/dev/null 2>&1 || complete -o bashdefault -o default -F _gen_operator npx
`,
  zsh: `#compdef gen-operator npx
${FIND_PROGRAM}_gen_operator() {
  local -a candidates line
  local program="\${words[1]}"
  line=("\${(@)words[1,CURRENT]}")
  if [[ "\${program:t}" == npx ]]; then
    shift line
    while [[ "\${line[1]}" == -* ]]; do shift line; done
    if [[ "\${line[1]}" != gen-operator || \${#line} -lt 2 ]]; then _files; return; fi
    program="$(_gen_operator_program)"
  fi
  candidates=("\${(@f)$(${DESCRIBED} "$program" ${COMPLETION_FLAG} "\${(@)line}" 2>/dev/null)}")
  if [[ -n "\${candidates[1]}" ]]; then _describe gen-operator candidates; else _files; fi
}
compdef _gen_operator gen-operator
if (( ! \${+_comps[npx]} )); then compdef _gen_operator npx; fi
`,
  fish: `function __gen_operator_program
  set -l folder $PWD
  while true
    if test -x "$folder/node_modules/.bin/gen-operator"
      echo "$folder/node_modules/.bin/gen-operator"
      return
    end
    test -z "$folder"; and break
    set folder (string replace -r '/[^/]*$' '' -- $folder)
  end
  command -s gen-operator
end
function __gen_operator_candidates
  set -l tokens (commandline -opc) (commandline -ct)
  set -l program $tokens[1]
  if string match -qr '(^|/)npx$' -- "$program"
    set -e tokens[1]
    while string match -q -- '-*' "$tokens[1]"
      set -e tokens[1]
    end
    test "$tokens[1]" = gen-operator -a (count $tokens) -gt 1; or return
    set program (__gen_operator_program); or return
  end
  ${DESCRIBED} $program ${COMPLETION_FLAG} $tokens 2>/dev/null | string replace -r '(?<!\\\\\\\\):' '\\t'
end
complete -c gen-operator -a '(__gen_operator_candidates)'
complete -c npx -a '(__gen_operator_candidates)'
`,
};
