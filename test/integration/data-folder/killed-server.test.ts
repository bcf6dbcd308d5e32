import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import fc from "../../support/fast-check.js";
import { isThorough, seed } from "../../support/runs.js";
import { createWitness } from "../../support/runtime/acknowledged-writes.js";
import { repositoryRoot } from "../../support/repository.js";
import { startCommand } from "../../support/machine/started-program.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const BIN = join(repositoryRoot, "apiserver/bin/apiserver.js");

async function startServer(folder: string) {
  const program = startCommand(folder, [process.execPath, BIN, "--no-tls", "--data-dir", "data", "--token", "secret"]);
  await program.see(/ready \S+\n/);
  const url = /ready (\S+)\n/.exec(program.output())?.[1] ?? "";
  return { program, connection: { url, token: "secret" } };
}

/** When a round kills the server: after so many acknowledged writes, and then after this time. */
const moment = fc.record({ writes: fc.integer({ min: 10, max: 70 }), pauseMs: fc.integer({ min: 0, max: 100 }) });

// A round kills the server at a random moment, and starts another one with what it has left.
async function killAgainAndAgain(rounds: number): Promise<void> {
  await using folder = await createTemporaryFolder();
  const witness = createWitness({ writers: 6 });
  for (const { writes, pauseMs } of fc.sample(moment, { numRuns: rounds, seed })) {
    const { program, connection } = await startServer(folder.path);
    assert.equal(await witness.contradictions(connection), []);
    const running = witness.run(connection);
    const enough = witness.acknowledged + writes;
    await waitFor("writes are acknowledged", () => witness.acknowledged >= enough);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
    await program[Symbol.asyncDispose]();
    await running;
  }
  const { program, connection } = await startServer(folder.path);
  assert.equal(await witness.contradictions(connection), []);
  await program[Symbol.asyncDispose]();
}

suite("SIGKILL of the API server", (test) => {
  const kills = isThorough ? 30 : 2;
  test(`keeps acknowledged writes and observed versions (${kills} kills)`, () => killAgainAndAgain(kills), {
    timeoutMs: 300_000,
  });
});
