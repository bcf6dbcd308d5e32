import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
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

// A round kills the server at a moment that nobody chooses, some writes after its start, and starts another one with what it has left.
async function killAgainAndAgain(rounds: number): Promise<void> {
  await using folder = await createTemporaryFolder();
  const witness = createWitness({ writers: 6 });
  for (let round = 0; round < rounds; round++) {
    const { program, connection } = await startServer(folder.path);
    assert.equal(await witness.contradictions(connection), []);
    const running = witness.run(connection);
    const enough = witness.acknowledged + 10 + Math.random() * 60;
    await waitFor("writes are acknowledged", () => witness.acknowledged >= enough);
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 100));
    await program[Symbol.asyncDispose]();
    await running;
  }
  const { program, connection } = await startServer(folder.path);
  assert.equal(await witness.contradictions(connection), []);
  await program[Symbol.asyncDispose]();
}

suite("SIGKILL of the API server", (test) => {
  test("keeps acknowledged writes and observed versions (2 kills)", () => killAgainAndAgain(2), {
    timeoutMs: 60_000,
  });

  test.thorough("keeps acknowledged writes and observed versions (30 kills)", () => killAgainAndAgain(30), {
    timeoutMs: 300_000,
  });
});
