import type { Argv } from "yargs";

/** What the command line passes to a command. */
export interface CommandFrame {
  /** Description of the command in the overview. */
  readonly summary: string;
  /** Called once with the exit code. */
  end(exitCode: number): void;
}

export type AddCommand = (parser: Argv, frame: CommandFrame) => void;
