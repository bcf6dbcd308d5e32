// What the server means for the process that starts it.
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const INDEX = JSON.stringify(join(repositoryRoot, "apiserver/dist/index.js"));
const COMMAND = join(repositoryRoot, "apiserver/bin/apiserver.js");

suite("API server process", (test) => {
  for (const [what, options] of Object.entries({
    "a controller that does not exist": `{ simulate: ["deployment"] }`,
    "an option that does not exist": `{ dataDirectory: "data" }`,
    "a file that does not exist": `{ objects: ["missing.yaml"] }`,
    "a port that is in use": "{ port: Number(new URL(first.url).port), simulate: true }",
    "an audit log that cannot be written": `{ auditLog: "/missing/audit.log" }`,
  })) {
    test(`exits after a failed start: ${what}`, async () => {
      await using program = await startScript(`
        import { startApiServer } from ${INDEX};
        const first = await startApiServer({ unref: true });
        await startApiServer(${options}).catch((error) => console.log("refused: " + error.message));
      `);
      assert.match(await program.output(), /^refused: /);
      assert.is(await program.code(), 0);
    });
  }

  test("warns that an open server keeps it alive, and keeps serving", async () => {
    await using program = await startScript(`
      import { startApiServer } from ${INDEX};
      const server = await startApiServer({ simulate: true });
      console.log(server.url);
    `);
    await program.until(/ keeps this process alive: call its close\(\), or start it with unref: true\n/);
    const [url = ""] = /https:\S+/.exec(program.text()) ?? [];
    // Its certificate is of an authority of its own.
    const failure = await fetch(`${url}/version`).catch(({ cause }: { cause: { code: string } }) => cause.code);
    assert.is(failure, "SELF_SIGNED_CERT_IN_CHAIN");
  });

  for (const simulate of [true, false]) {
    test(`exits despite an open server with unref: true${simulate ? ", and its controllers" : ""}`, async () => {
      await using program = await startScript(`
        import { startApiServer } from ${INDEX};
        const server = await startApiServer({ simulate: ${simulate}, unref: true });
        console.log("started");
      `);
      assert.is(await program.code(), 0);
      assert.is(program.text(), "started\n");
    });
  }

  test("exits without output after close()", async () => {
    await using program = await startScript(`
      import { startApiServer } from ${INDEX};
      const server = await startApiServer({ simulate: true });
      await server.close();
    `);
    assert.equal([await program.code(), program.text()], [0, ""]);
  });

  test("exits with --until-stdin-ends when its parent is killed", async () => {
    await using parent = await startScript(`
      import { spawn } from "node:child_process";
      const child = spawn(process.execPath, [${JSON.stringify(COMMAND)}, "--until-stdin-ends"], { stdio: ["pipe", "pipe", "inherit"] });
      child.stdout.on("data", (text) => console.log(child.pid + " " + text));
    `);
    await parent.until(/^\d+ ready/);
    const pid = Number.parseInt(parent.text(), 10);
    parent.kill();
    await waitFor("the server has ended", () => !isAlive(pid));
  });

  test("keeps running without --until-stdin-ends when standard input ends", async () => {
    await using parent = await startScript(`
      import { spawn } from "node:child_process";
      const child = spawn(process.execPath, [${JSON.stringify(COMMAND)}], { stdio: ["pipe", "pipe", "inherit"] });
      child.stdin.end();
      child.stdout.on("data", (text) => console.log(child.pid + " " + text));
    `);
    await parent.until(/^\d+ ready/);
    const pid = Number.parseInt(parent.text(), 10);
    const [url = ""] = /https?:\S+/.exec(parent.text()) ?? [];
    try {
      for (let count = 0; count < 20; count++) {
        const failure = await fetch(`${url}/version`).catch(({ cause }: { cause: { code: string } }) => cause.code);
        assert.is(failure, "SELF_SIGNED_CERT_IN_CHAIN");
      }
      assert.ok(isAlive(pid));
    } finally {
      process.kill(pid);
    }
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

interface Script extends AsyncDisposable {
  /** What it has printed so far. */
  text(): string;
  /** Waits until it has printed what matches. */
  until(pattern: RegExp): Promise<void>;
  output(): Promise<string>;
  code(): Promise<number | null>;
  kill(): void;
}

/** Runs a module in a process of its own. */
async function startScript(source: string): Promise<Script> {
  const folder = await createTemporaryFolder();
  const file = join(folder.path, "script.mjs");
  await writeFile(file, source);
  const child: ChildProcess = spawn(process.execPath, [file], { stdio: ["ignore", "pipe", "pipe"] });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream?.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const ended = once(child, "close").then(([code]) => code as number | null);
  return {
    text: () => text,
    until: async (pattern) => void (await waitFor(`it prints ${String(pattern)}`, () => pattern.test(text))),
    output: () => ended.then(() => text),
    code: () => ended,
    kill: () => void child.kill("SIGKILL"),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await ended;
      await folder[Symbol.asyncDispose]();
    },
  };
}
