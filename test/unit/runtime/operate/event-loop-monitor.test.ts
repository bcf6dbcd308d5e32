import { execFileSync } from "node:child_process";
import { semiSpaceMb } from "#runtime/operate/event-loop-monitor.js";
import { assert, suite } from "../../../support/suite.js";

const nodeWith = (execArgv: string[], options?: string, node = "20.20.2") => ({
  execArgv,
  env: options === undefined ? {} : { NODE_OPTIONS: options },
  versions: { ...process.versions, node },
});

suite("semiSpaceMb", (test) => {
  test("reads the last --max-semi-space-size flag, or returns the default of the Node.js version", () => {
    assert.is(semiSpaceMb(nodeWith([])), 16);
    assert.is(semiSpaceMb(nodeWith([], undefined, "24.1.0")), 64);
    assert.is(semiSpaceMb(nodeWith([], "--max-semi-space-size=8 --no-warnings")), 8);
    assert.is(semiSpaceMb(nodeWith(["--max_semi_space_size=4"], "--max-semi-space-size=8")), 4);
  });

  test("equals what this Node.js adds to the old generation, divided by 3", () => {
    const script = "process.stdout.write(String(require('v8').getHeapStatistics().heap_size_limit / 2 ** 20))";
    const env = { ...process.env, NODE_OPTIONS: "" };
    const limitMb = Number(execFileSync(process.execPath, ["--max-old-space-size=200", "-e", script], { env }));
    assert.is(limitMb - 200, 3 * semiSpaceMb({ execArgv: [], env: {}, versions: process.versions }));
  });
});
