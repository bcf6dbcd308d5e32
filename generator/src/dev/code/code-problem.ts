/** What a compiler says is wrong with the user's code. */
export interface CodeProblem {
  /** Relative to the project; absent where the message is about no file. */
  readonly file?: string;
  readonly line?: number;
  readonly column?: number;
  /** With the code of the compiler, such as `TS2551`. */
  readonly message: string;
}

/** Formats a problem as tsc does: `src/main.ts:3:7 - error TS2551: …`. */
export function formatProblem({ file, line, column, message }: CodeProblem): string {
  return `${file === undefined ? "" : `${file}:${line}:${column} - `}error ${message}`;
}
