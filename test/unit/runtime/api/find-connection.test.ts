import { waitFor } from "#apiserver/wait-for.js";
import { findConnection } from "#runtime/client/load-connection.js";
import { join } from "node:path";
import { writeFile } from "node:fs/promises";
import { createTemporaryFolder } from "../../../support/temporary-folder.js";
import { VirtualClock } from "../../../support/runtime/virtual-clock.js";
import { assert, suite } from "../../../support/suite.js";

suite("findConnection", (test) => {
  test("retries with growing pauses of at most 30 s until its signal is aborted", async () => {
    await using folder = await createTemporaryFolder();
    const kubeconfig = join(folder.path, "config");
    await writeFile(kubeconfig, "");
    const pauses: number[] = [];
    const none = () => {};
    const warn = (fields: object) => void pauses.push((fields as { readonly retryAfterMs: number }).retryAfterMs);
    const clock = new VirtualClock();
    const stopping = new AbortController();
    const found = findConnection(kubeconfig, {
      logger: { debug: none, info: none, warn, error: none },
      signal: stopping.signal,
      clock,
    });
    const ended = found.then(
      () => "found",
      (error: Error) => error.message,
    );
    for (let count = 1; count <= 10; count++) {
      await waitFor(`pause ${count}`, () => pauses.length === count && clock.nextDueAt !== undefined);
      clock.advance(pauses.at(-1)! + 1);
    }
    // Each pause is 50 to 100 % of twice the one before, rounded; 30 s is the longest.
    for (const [index, pause] of pauses.entries()) {
      const longest = Math.min(2_000 * 2 ** index, 30_000);
      assert.ok(pause >= longest / 2 && pause <= longest, `${pauses}`);
    }
    await waitFor("pause 11", () => pauses.length === 11 && clock.nextDueAt !== undefined);
    stopping.abort();
    assert.match(await ended, kubeconfig);
    clock.advance(60_000);
    assert.is(pauses.length, 11, "no attempt after the abort");
  });
});
