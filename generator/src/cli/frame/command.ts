import type { Argv } from "yargs";

/** Adds a command to the parser; the command calls `end` with its exit code. */
export type AddCommand = (parser: Argv, end: (exitCode: number) => void) => void;
