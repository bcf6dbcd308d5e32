import { createLogger, createSafeLogger, isWritten, type LogLevel } from "#runtime/base/logger.js";
import { assert, suite } from "../../../support/suite.js";

function linesOf(level: LogLevel, format: "json" | "pretty") {
  const lines: string[] = [];
  return { lines, logger: createLogger(level, { format, write: (line) => void lines.push(line) }) };
}

suite("logger", (test) => {
  test("a line is one JSON object with its time, level, message and fields", () => {
    const { lines, logger } = linesOf("info", "json");
    logger.warn({ retryAfterMs: 5 }, "no");
    assert.is(lines.length, 1);
    assert.ok(lines[0]!.endsWith("\n"));
    const { time, ...rest } = JSON.parse(lines[0]!) as { time: string };
    assert.equal(rest, { level: "warn", retryAfterMs: 5, message: "no" });
    assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test("what is less important than the level is not written, and silent writes nothing", () => {
    const { lines, logger } = linesOf("warn", "json");
    logger.debug({}, "a");
    logger.info({}, "b");
    assert.equal(lines, []);
    const silent = linesOf("silent", "json");
    silent.logger.error({}, "c");
    assert.equal(silent.lines, []);
  });

  test("a logger says which levels it writes, also through a safe one; one that cannot say so writes all", () => {
    for (const level of ["debug", "info", "warn", "error"]) {
      const { logger } = linesOf("warn", "json");
      const isImportant = level === "warn" || level === "error";
      assert.is(isWritten(logger, level), isImportant);
      assert.is(isWritten(createSafeLogger(logger), level), isImportant);
      const { debug, info, warn, error } = logger;
      assert.ok(isWritten(createSafeLogger({ debug, info, warn, error }), level));
    }
  });

  test("an error among the fields shows as its message with those of its causes", () => {
    const { lines, logger } = linesOf("info", "json");
    logger.info({ error: new Error("outer", { cause: new Error("inner") }) }, "x");
    assert.is((JSON.parse(lines[0]!) as { error: string }).error, "outer: inner");
  });

  test("the pretty form has level, message and fields in words for people", () => {
    const { lines, logger } = linesOf("info", "pretty");
    logger.error({ controller: "page" }, "it broke");
    assert.match(lines.join(""), /ERROR: it broke\n\s+controller: "page"/);
  });
});
