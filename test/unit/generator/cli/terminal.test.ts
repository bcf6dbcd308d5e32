import { createProgressLine, painterFor, showsColours } from "#generator/cli/print.js";
import { assert, suite } from "../../../support/suite.js";

suite("terminal color", (test) => {
  test("is used on a terminal only, unless NO_COLOR, FORCE_COLOR, or TERM says otherwise", () => {
    const cases: [isTTY: boolean, env: NodeJS.ProcessEnv, expected: boolean][] = [
      [true, {}, true],
      [false, {}, false],
      [true, { NO_COLOR: "1" }, false],
      // https://no-color.org: "when present and not an empty string".
      [true, { NO_COLOR: "" }, true],
      [true, { TERM: "dumb" }, false],
      [false, { FORCE_COLOR: "1" }, true],
      [false, { FORCE_COLOR: "" }, true],
      [true, { FORCE_COLOR: "0" }, false],
      [true, { FORCE_COLOR: "false" }, false],
      [false, { FORCE_COLOR: "1", NO_COLOR: "1" }, true],
    ];
    for (const [isTTY, env, expected] of cases) assert.is(showsColours({ isTTY }, env), expected, JSON.stringify(env));
  });

  test("is omitted without a terminal, and painted on one", () => {
    const { FORCE_COLOR, NO_COLOR, TERM } = process.env;
    try {
      for (const name of ["FORCE_COLOR", "NO_COLOR", "TERM"]) delete process.env[name];
      assert.is(painterFor({ isTTY: false })("red", "error"), "error");
      assert.is(painterFor({ isTTY: true })("red", "error"), "\u001b[31merror\u001b[39m");
    } finally {
      for (const [name, value] of Object.entries({ FORCE_COLOR, NO_COLOR, TERM }))
        if (value !== undefined) process.env[name] = value;
    }
  });
});

suite("progress line", (test) => {
  function createStream(isTTY: boolean) {
    const written: string[] = [];
    return { isTTY, written, write: (text: string) => written.push(text) };
  }

  test("replaces itself and is cleared at the end", () => {
    const stream = createStream(true);
    let time = 0;
    const line = createProgressLine(stream, () => time);
    line.report("reading");
    time = 500;
    line.report("writing");
    line.report("done");
    line.clear();
    line.clear();
    assert.equal(stream.written, ["\r\u001b[Kwriting …", "\r\u001b[Kdone …", "\r\u001b[K"]);
  });

  test("is not written without a terminal or for quick steps", () => {
    const piped = createStream(false);
    let time = 0;
    const line = createProgressLine(piped, () => time);
    time = 10_000;
    line.report("writing");
    line.clear();
    assert.equal(piped.written, []);
    const terminal = createStream(true);
    const quick = createProgressLine(terminal, () => 0);
    quick.report("writing");
    quick.clear();
    assert.equal(terminal.written, []);
  });
});
