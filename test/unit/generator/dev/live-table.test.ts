import { formatLogLine } from "#generator/dev/operator/operator-process.js";
import { LiveTable } from "#generator/dev/live-table.js";
import { parseMessages } from "#generator/dev/code/type-check.js";
import { assert, suite } from "../../../support/suite.js";

const ESCAPE = "\u001b[";

function draw(size = { columns: 60, rows: 40 }) {
  let text = "";
  const table = new LiveTable({ isTerminal: true, write: (part) => (text += part), size: () => size });
  /** What is printed since the last call. */
  const printed = () => {
    const part = text;
    text = "";
    return part;
  };
  return { table, printed };
}

const report = (primary: string, why = "") => ({
  ...{ controller: "page", primary, state: "not ready" },
  dependents: [{ name: "web", state: "waiting", why }],
});

const HOSTILE = "a\u001b[2J\u001b]52;c;cGF5\u0007\u009b1A\u202eb\u2028\r\u0000\ndefault/b: ready";

suite("untrusted text in dev", (test) => {
  // All but the sequences that the table itself writes.
  const rawIn = (text: string) =>
    text.replaceAll(/\u001b\[(?:\d+A|J|0m|1m)/g, "").match(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]/g);

  test("cannot move the cursor or start a line in the table or in plain output", () => {
    const { table, printed } = draw({ columns: 300, rows: 40 });
    let lines = "";
    const plain = new LiveTable({ isTerminal: false, write: (text) => (lines += text) });
    const hostile = { ...report(HOSTILE, HOSTILE), error: HOSTILE };
    for (const each of [table, plain]) {
      each.update(hostile);
      each.update({ ...hostile, dependents: [{ name: HOSTILE, state: HOSTILE, why: HOSTILE }] });
      each.step(HOSTILE);
      each.note(HOSTILE);
      each.remove(HOSTILE);
    }
    for (const text of [printed(), lines]) {
      assert.is(rawIn(text), null);
      assert.not.match(text, /^ *default\/b: ready/m);
    }
  });

  test("cannot start a line in a log line, and is indented after a line feed", () => {
    const fields = { level: "warn", time: "2026-01-01T00:00:00.000Z", name: HOSTILE, message: HOSTILE };
    const log = JSON.stringify({ ...fields, answer: HOSTILE, nested: { answer: HOSTILE }, stack: HOSTILE });
    for (const line of [log, HOSTILE.replace("\n", ""), `{"level":"${HOSTILE}`]) {
      const text = formatLogLine(line);
      assert.is(rawIn(text), null);
      assert.not.match(text, /^default\/b/m);
    }
  });
});

suite("LiveTable", (test) => {
  test("erases exactly its lines before it is drawn again", () => {
    const { table, printed } = draw();
    table.update(report("default/a", "for database"));
    assert.is(
      printed(),
      `${ESCAPE}1m  PRIMARY    STATE      WHY${ESCAPE}0m\n  default/a  not ready\n    web      waiting    for database\n`,
    );
    table.print("a line");
    assert.ok(printed().startsWith(`${ESCAPE}3A${ESCAPE}Ja line\n`));
    table.remove("default/a");
    assert.is(printed(), `${ESCAPE}3A${ESCAPE}J`);
    table.remove("default/a");
    assert.is(printed(), "");
  });

  test("stays within the width and height of the terminal, and counts the omitted rows", () => {
    const { table, printed } = draw({ columns: 40, rows: 14 });
    for (let number = 0; number < 20; number += 1) table.update(report(`default/${number}`, "why ".repeat(50)));
    const lines = printed().split(`${ESCAPE}J`).at(-1)?.trimEnd().split("\n") ?? [];
    assert.is(lines.length, 6);
    assert.is(lines.at(-1), "  … 36 more");
    for (const line of lines) assert.ok(line.replace(/\u001b\[\d+m/g, "").length < 40, line);
  });

  test("uses 100 columns and 40 rows for a terminal without a size", () => {
    const tables = [undefined, { columns: 0, rows: 0 }, { columns: 100, rows: 40 }].map((size) => {
      let text = "";
      const write = (part: string) => void (text += part);
      const table = new LiveTable({ isTerminal: true, write, ...(size === undefined ? {} : { size: () => size }) });
      for (let number = 0; number < 30; number += 1) table.update(report(`default/${number}`, "why ".repeat(50)));
      return text;
    });
    assert.is(new Set(tables).size, 1);
  });

  test("writes one line per change without a terminal", () => {
    let text = "";
    const table = new LiveTable({ isTerminal: false, write: (part) => (text += part) });
    table.update(report("default/a"));
    table.update(report("default/a"));
    table.update({ ...report("default/a"), state: "failed", error: "no luck" });
    table.remove("default/a");
    assert.is(text, "  default/a  web: waiting\n  default/a: not ready\n  default/a: no luck\n  default/a: deleted\n");
  });
});

suite("dev output", (test) => {
  test("formats a JSON log line with its primary and keeps other lines unchanged", () => {
    const fields = {
      level: "warn",
      time: "2026-11-24T09:31:09.1Z",
      message: "failed",
      namespace: "a",
      name: "b",
      uid: "c",
    };
    assert.is(
      formatLogLine(JSON.stringify({ ...fields, retryAfterMs: 5 })),
      "09:31:09 warn  a/b: failed retryAfterMs=5",
    );
    for (const line of ["plain", "{broken", '{"a":1}', ""]) assert.is(formatLogLine(line), line);
  });

  test("parses messages of tsc with position and continuation lines", () => {
    const output = "src/a b.ts(3,7): error TS2322: one\n  because\nerror TS18003: two\r\nFound 2 errors.\n";
    assert.equal(parseMessages(output), [
      { file: "src/a b.ts", line: 3, column: 7, message: "TS2322: one\n  because" },
      { message: "TS18003: two" },
    ]);
  });
});
