// Parses the tables of JOSDK's scenarios in test/JOSDK.md, and of its features in test/FEATURES.md.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../repository.js";

/** A test that a row refers to. */
export interface NamedTest {
  /** The path below `test`, without `.ts`. */
  file: string;
  title: string;
}

/** A scenario or feature of JOSDK. */
export interface JosdkRow {
  /** The heading of the table and the number in it, such as `EventProcessorTest 7`, or the id of a feature. */
  id: string;
  /** The name of the file. */
  document: string;
  line: number;
  tests: NamedTest[];
  /** Remarks in place of tests or in addition to them. */
  remarks: { word: string; reason: string }[];
}

/** Reads the tables of scenarios. */
export function readJosdkTable(): JosdkRow[] {
  return readTables("JOSDK.md");
}

/** Reads the tables of features. */
export function readFeatureTable(): JosdkRow[] {
  return readTables("FEATURES.md");
}

/** Reads the headings of the tables in a document. */
export function headingsOf(document: string): string[] {
  const text = readFileSync(join(repositoryRoot, "test", document), "utf8");
  return [...text.matchAll(/^### (.*)$/gm)].map(([, heading]) => heading!);
}

function readTables(document: string): JosdkRow[] {
  return parseJosdkTable(readFileSync(join(repositoryRoot, "test", document), "utf8"), document);
}

/** Parses a document whose tables have the number in the first column and the tests in the last one. */
export function parseJosdkTable(text: string, document: string): JosdkRow[] {
  let heading = "";
  return text.split("\n").flatMap((content, index) => {
    heading = /^### (.*)$/.exec(content)?.[1] ?? heading;
    const cells = /^\| ([A-Z]{0,2})(\d+) \| .* \| (.*) \|$/.exec(content);
    if (cells === null) return [];
    const [, letter, number, where] = cells as unknown as [string, string, string, string];
    const id = letter === "" ? `${heading} ${number}` : `${letter}${number}`;
    const clauses = where.split("<br>").map((clause) => clause.trim());
    const tests = clauses.flatMap((clause) => {
      const named = /^`([^`]+\.test)` › (.+)$/.exec(clause);
      return named === null ? [] : [{ file: named[1]!, title: named[2]! }];
    });
    const remarks = clauses.flatMap((clause) => {
      const said = /^([a-z ]+?)(?:: (.+))?$/.exec(clause);
      return said === null ? [] : [{ word: said[1]!, reason: said[2] ?? "" }];
    });
    return [{ id, document, line: index + 1, tests, remarks }];
  });
}

/** Lists the tests in the tables whose files ran, but that did not pass in that run. */
export function missingTests(rows: readonly JosdkRow[], passed: ReadonlyMap<string, readonly string[]>): string[] {
  return rows.flatMap(({ id, document, tests }) =>
    tests
      .filter(({ file, title }) => passed.get(file)?.includes(title) === false)
      .map(({ file, title }) => `${document}, ${id}: ${file} ran, but "${title}" did not pass in it`),
  );
}
