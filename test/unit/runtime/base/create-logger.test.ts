import { createLogger, createSafeLogger, isWritten, messageOf, type LogLevel } from "#runtime/base/logger.js";
import { assert, suite } from "../../../support/suite.js";

function linesOf(level: LogLevel, format: "json" | "pretty") {
  const lines: string[] = [];
  return { lines, logger: createLogger(level, { format, write: (line) => void lines.push(line) }) };
}

const HOSTILE = "a\u001b[2J\u009b1A\u202eb\u2028\u0000\n12:00:00.000 INFO: all is well";

suite("untrusted text in logs", (test) => {
  test("is escaped in JSON lines and parses to the same value", () => {
    const { lines, logger } = linesOf("info", "json");
    logger.warn({ answer: HOSTILE, [HOSTILE]: [HOSTILE] }, HOSTILE);
    assert.not.match(lines[0]!.slice(0, -1), /[\u0000-\u001f\u007f-\u009f\u2028-\u202e]/);
    const { message, answer } = JSON.parse(lines[0]!) as { message: string; answer: string };
    assert.equal([message, answer], [HOSTILE, HOSTILE]);
  });

  test("cannot forge a line in the pretty format, and contains no control characters", () => {
    const { lines, logger } = linesOf("info", "pretty");
    logger.warn({ answer: HOSTILE, [HOSTILE]: [HOSTILE], stack: HOSTILE }, HOSTILE);
    const text = lines.join("");
    assert.not.match(text, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u2028-\u202e]/);
    assert.not.match(text, /^12:00/m);
  });

  test("is truncated at 4096 characters in messages, fields and errors, with the omitted length", () => {
    const { lines, logger } = linesOf("info", "json");
    const long = "x".repeat(900_000);
    const safe = createSafeLogger(logger);
    safe.warn({ answer: long, error: new Error(long, { cause: new Error(long) }), nested: { list: [long] } }, long);
    safe.warn(
      { list: Array.from({ length: 5_000 }, (_, index) => `item ${index}`) },
      messageOf(new AggregateError([new Error(long)], long)),
    );
    for (const line of lines) {
      assert.ok(line.length < 5 * 4096, `${line.length}`);
      assert.match(line, /… \d+ more/);
    }
    const message = messageOf(new Error(`update: ${messageOf(new Error(long))}`));
    assert.ok(message.length <= 4096);
    // A message that is cut twice counts all that is missing.
    assert.is(Number(/… (\d+) more$/.exec(message)![1]) + message.indexOf("…"), 900_000 + "update: ".length);
  });

  test("is truncated at any depth of a field, and if a line has too many strings or values", () => {
    const long = "x".repeat(900_000);
    class Page {
      readonly spec = { html: long };
    }
    const containers = [{ name: "web", env: [{ name: "TEXT", value: long }] }];
    const primary = { kind: "Page", spec: { template: { spec: { template: { spec: { containers } } } } } };
    const circular: { self?: object; text: string } = { text: "a" };
    circular.self = circular;
    let nested: object = { text: long };
    for (let depth = 0; depth < 20_000; depth++) nested = { nested };
    const texts = Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`key-${index}`, "x".repeat(4_000)]));
    const wide = Object.fromEntries(Array.from({ length: 200_000 }, (_, index) => [`key-${index}`, index]));
    const fields = { primary, page: new Page(), circular, nested, texts, wide, bytes: Buffer.from(long) };
    for (const [name, field] of Object.entries(fields)) {
      const { lines, logger } = linesOf("info", "json");
      createSafeLogger(logger).info({ [name]: field, object: "after" }, "no");
      assert.ok(lines[0]!.length < 120_000, `${name}: ${lines[0]!.length}`);
      const line = JSON.parse(lines[0]!) as { readonly [field: string]: unknown };
      assert.is(line["message"], "no");
      if (name !== "circular") assert.match(lines[0]!, /… \d+ (more|bytes)|"…"/);
      if (name === "primary") assert.match(lines[0]!, /"name":"TEXT","value":"x{4056}… 895944 more"/);
      if (name === "circular") assert.equal(line["circular"], { text: "a", self: "[Circular]" });
    }
  });

  test("reaches a custom logger as the same fields object if it is short", () => {
    let seen: object = {};
    const take = (fields: object) => void (seen = fields);
    const fields = { error: new Error("no"), list: ["a"], date: new Date(0), nested: { deep: { text: "b" } } };
    createSafeLogger({ debug: take, info: take, warn: take, error: take }).warn(fields, "no");
    assert.is(seen, fields);
  });
});

suite("createLogger", (test) => {
  test("writes one JSON object per line with time, level, message and fields", () => {
    const { lines, logger } = linesOf("info", "json");
    logger.warn({ retryAfterMs: 5 }, "no");
    assert.is(lines.length, 1);
    assert.ok(lines[0]!.endsWith("\n"));
    const { time, ...rest } = JSON.parse(lines[0]!) as { time: string };
    assert.equal(rest, { level: "warn", retryAfterMs: 5, message: "no" });
    assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test("writes nothing below the level, and nothing at all with silent", () => {
    const { lines, logger } = linesOf("warn", "json");
    logger.debug({}, "a");
    logger.info({}, "b");
    assert.equal(lines, []);
    const silent = linesOf("silent", "json");
    silent.logger.error({}, "c");
    assert.equal(silent.lines, []);
  });

  test("reports the enabled levels, also through a safe logger; a logger without a level enables all", () => {
    for (const level of ["debug", "info", "warn", "error"]) {
      const { logger } = linesOf("warn", "json");
      const isImportant = level === "warn" || level === "error";
      assert.is(isWritten(logger, level), isImportant);
      assert.is(isWritten(createSafeLogger(logger), level), isImportant);
      const { debug, info, warn, error } = logger;
      assert.ok(isWritten(createSafeLogger({ debug, info, warn, error }), level));
    }
  });

  test("formats an error field as its message and the messages of its causes", () => {
    const { lines, logger } = linesOf("info", "json");
    logger.info({ error: new Error("outer", { cause: new Error("inner") }) }, "x");
    assert.is((JSON.parse(lines[0]!) as { error: string }).error, "outer: inner");
  });

  test("writes level, message and fields in the pretty format", () => {
    const { lines, logger } = linesOf("info", "pretty");
    logger.error({ controller: "page" }, "it broke");
    assert.match(lines.join(""), /ERROR: it broke\n\s+controller: "page"/);
  });
});
