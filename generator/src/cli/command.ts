import type { Argv } from "yargs";

/** What a command is added with. */
export interface CommandFrame {
  /** What the overview says of the command. */
  readonly summary: string;
  /** Called once with the exit code. */
  end(exitCode: number): void;
}

/** Adds a command to the parser. */
export type AddCommand = (parser: Argv, frame: CommandFrame) => void;
