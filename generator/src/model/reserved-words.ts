/** What no variable or function of a module can be called: the words of ECMAScript 2024, 12.7.2, and what strict mode and modules add. */
export const reservedWords: ReadonlySet<string> = new Set(
  (
    "arguments await break case catch class const continue debugger default delete do else enum eval export extends false " +
    "finally for function if implements import in instanceof interface let new null package private protected public return " +
    "static super switch this throw true try typeof var void while with yield"
  ).split(" "),
);
