import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand, runOrThrow, type CommandResult } from "./command.js";
import { packageNames, type PackedPackages } from "./packages.js";

/** A project whose test runs the API server while the timers and the date are fake. */
export interface RunnerProject {
  run(runner: "vitest" | "jest"): Promise<CommandResult>;
}

/** What the test of each runner does. Node 20 has no `await using`. */
const BODY = `
import https from "node:https";
import { startApiServer, waitFor } from "@gen-operator/apiserver";

export async function play() {
  const server = await startApiServer({ simulate: true });
  const request = (path, { method = "GET", body } = {}) =>
    new Promise((resolve, reject) => {
      const headers = { authorization: "Bearer " + server.token, "content-type": "application/json" };
      https.request(server.url + path, { ca: server.ca, headers, method }, resolve).on("error", reject).end(body);
    });
  const pods = "/api/v1/namespaces/default/pods";
  const watch = await request(pods + "?watch=true");
  let seen = "";
  watch.on("data", (chunk) => (seen += chunk));
  const spec = { containers: [{ name: "c", image: "i" }] };
  const body = JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "one" }, spec });
  // The namespace may lack its service account at first.
  await waitFor("the Pod is created", async () => {
    const answer = await request(pods, { method: "POST", body });
    answer.resume();
    return answer.statusCode === 201;
  });
  await waitFor("the watch sees the Pod run", () => seen.includes('"phase":"Running"'));
  watch.destroy();
  await server.close();
  const [, created] = /"creationTimestamp":"(\\d+)/.exec(seen);
  return { faked: new Date().getFullYear(), created: Number(created) };
}
`;

const testOf = (imports: string, timers: string, options: string) => `
${imports}
import { play } from "./body.mjs";

test("it works", async () => {
  ${timers}.useFakeTimers(${options});
  const { faked, created } = await play();
  ${timers}.useRealTimers();
  expect([faked, created]).toEqual([2001, new Date().getFullYear()]);
}, 120_000);
`;

const COMMANDS = {
  vitest: ["npx", "vitest", "run", "vitest.test.mjs"],
  jest: ["npx", "jest", "--testMatch", "**/jest.test.mjs"],
};

/** Installs the API server, as packed, beside vitest and jest. The settings are those that its README asks for. */
export async function createRunnerProject({ folder, node, archiveOf }: PackedPackages): Promise<RunnerProject> {
  const project = join(folder, "runners");
  await mkdir(project);
  const files = {
    "package.json": '{ "private": true, "type": "module" }\n',
    "body.mjs": BODY,
    "vitest.test.mjs": testOf('import { expect, test, vi } from "vitest";', "vi", "{ now: Date.UTC(2001, 5, 1) }"),
    "jest.test.mjs": testOf(
      'import { expect, jest, test } from "@jest/globals";',
      "jest",
      '{ now: Date.UTC(2001, 5, 1), doNotFake: ["nextTick"] }',
    ),
  };
  for (const [name, text] of Object.entries(files)) await writeFile(join(project, name), text);
  const archives = [packageNames.apiserver, packageNames.schema].map(archiveOf);
  await runOrThrow(["npm", "install", "--prefer-offline", ...archives, "vitest@^4", "jest@^30"], {
    cwd: project,
    node,
  });
  return {
    run: (runner) => {
      const env = runner === "jest" ? { NODE_OPTIONS: "--experimental-vm-modules" } : {};
      return runCommand(COMMANDS[runner], { cwd: project, node, env });
    },
  };
}
