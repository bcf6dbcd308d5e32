import { assert, suite } from "../support/suite.js";
import { readSources } from "./source-files.js";

const FAKED =
  /(?<![.\w#"`])(?:setTimeout|setInterval|setImmediate|queueMicrotask)\(|Date\.now\(|new Date\(\)|performance\.now\(|node:timers/;
const TAKEN = /^import \{([^}]*)\} from "(?:\.\.?\/)+clock\.js";$/m;

suite("time in the API server", (test) => {
  test("comes only from clock.ts, so that fake timers in tests do not affect it", () => {
    const found = readSources("apiserver/src")
      .filter(({ path }) => !path.endsWith("/clock.ts"))
      .flatMap(({ path, text }) => {
        const taken = (TAKEN.exec(text)?.[1] ?? "").split(",").map((name) => name.trim());
        return text.split("\n").flatMap((line, index) => {
          const used = /^\s*(\/\/|\*|\/\*)/.test(line) ? undefined : FAKED.exec(line)?.[0].replace("(", "");
          return used === undefined || taken.includes(used) ? [] : [`${path}:${index + 1} ${used}`];
        });
      });
    assert.equal(found, []);
  });
});
