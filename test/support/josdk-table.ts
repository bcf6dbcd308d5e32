// The table of JOSDK's scenarios in test/JOSDK.md, as data.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "./repository.js";

/** One test that a row names. */
export interface NamedTest {
  /** Below `test`, without `.ts`. */
  file: string;
  title: string;
}

/** One scenario of JOSDK. */
export interface JosdkRow {
  /** The heading of the table and the number in it, such as `EventProcessorTest 7`. */
  id: string;
  line: number;
  tests: NamedTest[];
  /** What is said instead of a test, or beside it. */
  remarks: { word: string; reason: string }[];
}

/** Reads the table. */
export function readJosdkTable(): JosdkRow[] {
  return parseJosdkTable(readFileSync(join(repositoryRoot, "test/JOSDK.md"), "utf8"));
}

/** Parses a document whose tables have the columns number, scenario and where. */
export function parseJosdkTable(text: string): JosdkRow[] {
  let heading = "";
  return text.split("\n").flatMap((content, index) => {
    heading = /^### (.*)$/.exec(content)?.[1] ?? heading;
    const cells = /^\| (\d+) \| (.*) \| (.*) \|$/.exec(content);
    if (cells === null) return [];
    const [, number, , where] = cells as unknown as [string, string, string, string];
    const clauses = where.split("<br>").map((clause) => clause.trim());
    const tests = clauses.flatMap((clause) => {
      const named = /^`([^`]+\.test)` › (.+)$/.exec(clause);
      return named === null ? [] : [{ file: named[1]!, title: named[2]! }];
    });
    const remarks = clauses.flatMap((clause) => {
      const said = /^([a-z ]+?)(?:: (.+))?$/.exec(clause);
      return said === null ? [] : [{ word: said[1]!, reason: said[2] ?? "" }];
    });
    return [{ id: `${heading} ${number}`, line: index + 1, tests, remarks }];
  });
}

/** Names the tests of the table that are in files that ran, but did not pass there. */
export function missingTests(rows: readonly JosdkRow[], passed: ReadonlyMap<string, readonly string[]>): string[] {
  return rows.flatMap(({ id, tests }) =>
    tests
      .filter(({ file, title }) => passed.get(file)?.includes(title) === false)
      .map(({ file, title }) => `JOSDK.md, ${id}: ${file} ran, but "${title}" did not pass in it`),
  );
}
