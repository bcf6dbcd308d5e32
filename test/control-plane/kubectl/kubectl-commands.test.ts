// The commands of kubectl-commands.yaml on the embedded server, and on a real one with its real controllers: the same exit codes, and the
// same output but for what differs from run to run.
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { startApiServer } from "#apiserver/index.js";
import { startSimulation } from "#apiserver/simulate/index.js";
import { REAL_CONTROLLERS } from "../../support/api/api-server.js";
import { findBinaryOrThrow } from "../../support/machine/binaries.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

interface Command {
  run: string;
  in?: string;
  sorted?: true;
  known?: string;
}

interface Outcome {
  exitCode: number;
  output: string;
}

const FILE = join(repositoryRoot, "test/control-plane/kubectl/kubectl-commands.yaml");
const NAMESPACE = "shop";

suite("kubectl commands", (test) => {
  test(
    "have the same result on the embedded server as on kube-apiserver",
    async () => {
      const listed = parse(await readFile(FILE, "utf8")) as (string | Command)[];
      const commands = listed.map((command) => (typeof command === "string" ? { run: command } : command));
      await using folder = await createTemporaryFolder();
      await using embedded = await startApiServer({ simulate: true });
      const kubeconfig = join(folder.path, "kubeconfig");
      await embedded.writeKubeconfig(kubeconfig);
      await using real = await startControlPlane({ controllerNames: REAL_CONTROLLERS });
      // There are no nodes.
      await using _simulation = await startSimulation(real, { only: ["pods", "events"] });
      const [ours, theirs] = await Promise.all([play(kubeconfig, commands), play(real.kubeconfig, commands)]);
      const problems = commands.flatMap((command, index) => problemsOf(command, ours[index], theirs[index]));
      assert.is(problems.join("\n\n"), "");
      assert.ok(ours.length >= 80, `only ${ours.length} commands`);
    },
    { timeoutMs: 400_000 },
  );
});

function problemsOf({ run, known }: Command, ours: Outcome | undefined, theirs: Outcome | undefined): string[] {
  const isSame = ours?.output === theirs?.output;
  if (known !== undefined) {
    return isSame ? [`kubectl ${run}: known to differ (${known}), and no longer different`] : [];
  }
  if (isSame && ours?.exitCode === theirs?.exitCode) return [];
  const show = (outcome: Outcome | undefined) => `exit ${outcome?.exitCode}\n${outcome?.output}`;
  return [`kubectl ${run}\n--- embedded: ${show(ours)}\n--- real: ${show(theirs)}`];
}

async function play(kubeconfig: string, commands: Command[]): Promise<Outcome[]> {
  await using folder = await createTemporaryFolder();
  const input = join(folder.path, "input.yaml");
  const outcomes: Outcome[] = [];
  for (const { run, in: text = "", sorted } of commands) {
    await writeFile(input, text);
    // An underscore stands for a space within a word.
    const words = run.split(" ").map((word) => (word === "INPUT" ? input : word.replace(/(?<=\S)_(?=\S)/g, " ")));
    const isInNamespace = !/^(create|delete|get) namespace/.test(run);
    const scope = isInNamespace ? [`--namespace=${NAMESPACE}`] : [];
    const args = [`--kubeconfig=${kubeconfig}`, `--cache-dir=${folder.path}`, ...scope, ...words];
    const { exitCode, output } = await kubectl(args);
    const shown = normalise(output).replaceAll(input, "INPUT");
    outcomes.push({ exitCode, output: sorted === true ? shown.split("\n").sort().join("\n") : shown });
  }
  return outcomes;
}

function kubectl(args: string[]): Promise<Outcome> {
  return new Promise((resolve) => {
    execFile(findBinaryOrThrow("kubectl"), args, { timeout: 60_000 }, (error, stdout, stderr) => {
      resolve({ exitCode: error === null ? 0 : Number(error.code ?? 1), output: `${stdout}${stderr}` });
    });
  });
}

const LETTERS = "bcdfghjklmnpqrstvwxz2456789";

/** Names what differs from run to run by what it is. */
function normalise(output: string): string {
  // The hash of a pod template is a number of 32 bits in decimal digits, so that it may be short.
  const hash = `[0-9a-f${LETTERS}]`;
  return withoutEvents(output)
    .replace(/eyJ[\w-]+\.[\w-]+\.[\w-]+/g, "TOKEN")
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}/g, "UID")
    .replace(/(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} [\d:]{8} [+-]\d{4}/g, "TIME")
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?( [+-]\d{4}( [A-Z]+)?)?/g, "TIME")
    .replace(new RegExp(`\\b(web|agent|once|tick-now)-${hash}{5,10}-${hash}{5}\\b`, "g"), "$1-HASH-POD")
    .replace(new RegExp(`\\b(agent|once|tick-now)-${hash}{5}\\b`, "g"), "$1-POD")
    .replace(new RegExp(`\\b(web|db|agent)-${hash}{5,10}\\b`, "g"), "$1-HASH")
    .replace(new RegExp(`(pod-template-hash|controller-revision-hash)([=:] ?)"?${hash}{5,10}"?`, "g"), "$1$2HASH")
    .replace(new RegExp(`\\bkube-api-access-${hash}{5}\\b`, "g"), "kube-api-access-HASH")
    .replace(/https:\/\/127\.0\.0\.1:\d+/g, "SERVER")
    .replace(/\b\d+\.\d+\.\d+\.\d+(:\d+)?/g, "ADDRESS")
    .replace(/\b3[0-2]\d{3}\b/g, "PORT")
    .replace(/\b(\d+h)?(\d+m)?\d+(\.\d+)?(s|ms|m)\b/g, "AGE")
    .replace(/\/[^\s:]*\/(LIVE|MERGED)-\d+/g, "/$1")
    .replace(/(resourceVersion: )"\d+"/g, '$1"N"')
    .replace(/[ \t]+/g, " ")
    .replace(/-{3,}/g, "---")
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => !/^(Waiting for|waiting for|Warning: .*the embedded API server)/.test(line))
    .join("\n")
    .trim();
}

/** Events of one second come in any order, and some come later than what they tell of; the laws of Events compare them. */
function withoutEvents(output: string): string {
  return output.replace(/^Events:(.|\n)*?(?=^Name:|$(?![\s\S]))/gm, "");
}
