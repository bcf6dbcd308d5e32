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
    assert.ok(pauses[0]! >= 1_000 && pauses[0]! <= 2_000, `${pauses}`);
    for (const pause of pauses.slice(5)) assert.ok(pause >= 15_000 && pause <= 30_000, `${pauses}`);
    stopping.abort();
    assert.match(await ended, kubeconfig);
  });
});
