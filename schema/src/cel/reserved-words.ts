/** The words that CEL keeps for itself: https://github.com/google/cel-spec/blob/master/doc/langdef.md#syntax */
export const RESERVED_WORDS: ReadonlySet<string> = new Set([
  ...["true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import"],
  ...["let", "loop", "package", "namespace", "return", "var", "void", "while"],
]);
