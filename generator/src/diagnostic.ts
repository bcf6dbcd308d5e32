/** A place in a file of the project; line and column count from 1. */
export interface SourcePosition {
  file: string;
  line: number;
  column: number;
}
