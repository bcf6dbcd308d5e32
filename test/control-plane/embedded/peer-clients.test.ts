// Clients that others wrote, in Go, Java and Python, find on the embedded server what they find on the real one.
import { execFile, execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import { apiRequest, apiRequestOrThrow, type Connection } from "../../support/api/api-request.js";
import { borrowControlPlane } from "../../support/machine/borrow-control-plane.js";
import type { ControlPlane } from "../../support/machine/control-plane.js";
import { waitFor } from "#apiserver/wait-for.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, shared, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { installPython } from "./python-client.js";
import { startProgram } from "./apiserver-program.js";

const BUILD_TIMEOUT_MS = 600_000;
const DEFINITIONS = "test/conformance/definitions.yaml";
const clients = join(repositoryRoot, "test/control-plane/clients");
const run = promisify(execFile);
const realServer = shared(startRealServer);

suite("client-go", (test) => {
  const title = "reads the same results from the embedded server as from kube-apiserver";
  if (!isInstalled("go", "version")) return test.skip(title, "there is no Go");
  test(
    title,
    async () => {
      await using folder = await createTemporaryFolder();
      const program = join(folder.path, "client-go");
      const cwd = join(clients, "client-go");
      const env = { ...process.env, CGO_ENABLED: "0", GOWORK: "off" };
      await run("go", ["build", "-o", program, "."], { cwd, env, timeout: BUILD_TIMEOUT_MS });
      const found = await onBoth((kubeconfig) => [
        program,
        kubeconfig,
        "client-go",
        "application/vnd.kubernetes.protobuf",
      ]);
      assert.equal(Object.keys(found), [
        ...["typed", "pages", "dynamic", "discovery", "informer", "dynamicInformer", "apply", "leaderElection"],
      ]);
      assert.is(found["typed"]?.["conflict"], true);
      assert.is(found["informer"]?.["watchList"], true);
      assert.equal(found["apply"]?.["causes"], ["FieldManagerConflict .data.a"]);
      assert.is(found["leaderElection"]?.["holder"], "two");
    },
    { timeoutMs: BUILD_TIMEOUT_MS },
  );
});

suite("fabric8 client", (test) => {
  const title = "reads the same results from the embedded server as from kube-apiserver";
  if (!isInstalled("mvn", "-version") || !isInstalled("java", "-version"))
    return test.skip(title, "there is no Java or no Maven");
  test(
    title,
    async () => {
      await using folder = await createTemporaryFolder();
      const classpath = join(folder.path, "classpath");
      const goals = ["compile", "dependency:build-classpath", `-Dmdep.outputFile=${classpath}`];
      const cwd = join(clients, "fabric8");
      await run("mvn", ["-q", "-B", `-DbuildFolder=${folder.path}`, ...goals], { cwd, timeout: BUILD_TIMEOUT_MS });
      const path = `${join(folder.path, "classes")}:${await readFile(classpath, "utf8")}`;
      const found = await onBoth((kubeconfig) => ["java", "-cp", path, "Main", kubeconfig, "fabric8"]);
      const checks = ["crud", "errors", "serverSideApply", "status", "patches", "watch", "informer"];
      assert.equal(Object.keys(found), checks);
      assert.is(found["errors"]?.["conflict"], "409 Conflict");
      assert.equal(found["watch"]?.["events"], ["ADDED watched", "MODIFIED watched", "DELETED watched"]);
      assert.is(found["informer"]?.["synced"], true);
    },
    { timeoutMs: BUILD_TIMEOUT_MS },
  );
});

suite("Python client", (test) => {
  const title = "reads the same results from the embedded server as from kube-apiserver, informer included";
  const python = installPython(join(clients, "python/requirements.txt"));
  if ("problem" in python) return test.skip(title, python.problem);
  test(
    title,
    async () => {
      const program = join(clients, "python/main.py");
      const found = await onBoth((kubeconfig) => [python.program, program, kubeconfig, "python"]);
      assert.equal(Object.keys(found), ["crud", "errors", "pages", "custom", "watch", "informer"]);
      assert.is(found["errors"]?.["conflict"], "409 Conflict");
      assert.equal(found["informer"], { cached: { a: "2" }, gone: true, told: ["ADDED", "MODIFIED", "DELETED"] });
    },
    { timeoutMs: BUILD_TIMEOUT_MS },
  );
});

type Found = Record<string, Record<string, unknown>>;

/** Runs a client on either server and gives what it found, which must be the same. */
async function onBoth(commandOf: (kubeconfig: string) => string[]): Promise<Found> {
  await using folder = await createTemporaryFolder();
  const kubeconfig = join(folder.path, "kubeconfig");
  await using embedded = startProgram(["--port", "0", "--kubeconfig", kubeconfig, "--crds", DEFINITIONS]);
  await embedded.ready();
  const ours = await findings(commandOf(kubeconfig));
  const theirs = await findings(commandOf((await realServer()).kubeconfig));
  assert.equal(ours, theirs);
  return ours;
}

async function findings([program = "", ...args]: string[]): Promise<Found> {
  const { stdout } = await run(program, args, { timeout: 90_000 });
  const lines = stdout.split("\n").filter((line) => line !== "");
  const checks = lines.map((line) => JSON.parse(line) as { check: string } & Record<string, unknown>);
  return Object.fromEntries(checks.map(({ check, ...found }) => [check, found]));
}

async function startRealServer(): Promise<ControlPlane> {
  const plane = await borrowControlPlane();
  const text = await readFile(join(repositoryRoot, DEFINITIONS), "utf8");
  for (const document of parseAllDocuments(text)) await install(plane, document.toJS() as Definition);
  return plane;
}

interface Definition {
  spec: { group: string; names: { plural: string }; versions: { name: string }[] };
}

async function install(plane: Connection, body: Definition): Promise<void> {
  await apiRequestOrThrow(plane, "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body });
  const { group, names, versions } = body.spec;
  for (const { name } of versions) {
    const path = `GET /apis/${group}/${name}/${names.plural}`;
    await waitFor(`${path} is served`, async () => (await apiRequest(plane, path)).status === 200);
  }
}

function isInstalled(program: string, ...args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
