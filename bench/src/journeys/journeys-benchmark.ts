// The number of files to open to follow what the program does. A file counts if one of its named functions is called.
import { execFile } from "node:child_process";
import { cp, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { createLogger, createOperator } from "@gen-operator/runtime";
import { startApiServer } from "#apiserver/index.js";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow, type Connection } from "#test/support/api/api-request.js";
import { repositoryRoot } from "#test/support/repository.js";
import { createTemporaryFolder } from "#test/support/temporary-folder.js";
import { WebPage, webPageController } from "#webpage/generated/index.js";
import { startEmbeddedPlane } from "../operators/embedded-plane.js";
import type { BenchmarkResult } from "../measurement.js";
import { calledFunctions, type ScriptCoverage } from "#test/support/called-functions.js";
import { coveredFiles, followCalls, type CoveredFiles } from "./covered-files.js";

const SAMPLE = join(repositoryRoot, "fixtures/samples/webpage");
const CRD = join(SAMPLE, "crds/webpages.example.com.yaml");
const NAME = { name: "one", namespace: "default" };
const QUIET_MS = 1_000;
// Longer than an edit takes, so that each timer of an idle operator fires at least once.
const IDLE_MS = 3_000;
const TIMEOUT_MS = 60_000;

/** Counts the files of each journey. JOURNEY_FILES=1 lists them. */
export async function measureJourneys(): Promise<BenchmarkResult> {
  const [patch, get] = await followServer();
  const journeys: readonly [string, CoveredFiles][] = [
    ["an edit of a WebPage, to its writes", await followEdit()],
    ["one PATCH of a ConfigMap, in the API server", patch],
    ["one GET of a ConfigMap, in the API server", get],
    ["generate of the sample webpage", await followGenerate()],
  ];
  const lists = process.env["JOURNEY_FILES"] === "1" ? journeys.map(([name, files]) => listOf(name, files)) : [];
  return {
    benchmark: "journeys",
    peers: [],
    notes: [
      "files of our packages of which a named function is called, and those functions, by V8's precise coverage; what an idle operator calls by its timers does not count",
      ...lists,
    ],
    measurements: journeys.flatMap(([name, files]) => [
      { name, unit: "files", ours: files.size, better: "lower" as const },
      {
        name,
        unit: "functions",
        ours: [...files.values()].reduce((sum, count) => sum + count, 0),
        better: "lower" as const,
      },
    ]),
  };
}

function listOf(name: string, files: CoveredFiles): string {
  return `${name}:\n\n${[...files].map(([file, count]) => `- ${file}: ${count}`).join("\n")}`;
}

/** The API server runs in a separate process, so that only the operator is recorded. */
async function followEdit(): Promise<CoveredFiles> {
  const plane = await startEmbeddedPlane();
  try {
    const { url, token, ca } = plane;
    const connection = { url, token, ...(ca === undefined ? {} : { ca }) };
    let requests = 0;
    let lastAt = 0;
    const onRequest = () => {
      requests++;
      lastAt = performance.now();
    };
    const crd = await crdOf();
    await apiRequestOrThrow(connection, "POST /apis/apiextensions.k8s.io/v1/customresourcedefinitions", { body: crd });
    await using operator = createOperator({
      controllers: [webPageController],
      connection,
      onRequest,
      logger: createLogger("error"),
    });
    const { client } = await operator.start();
    const page = WebPage.create({ metadata: NAME, spec: { html: "<h1>hello</h1>", host: "one.example.com" } });
    await client.create(WebPage, page);
    const isQuiet = () => requests > 0 && performance.now() - lastAt > QUIET_MS;
    const isReady = async () => (await read(connection)).status?.ready === true;
    await waitFor("the page is ready", isReady, { timeoutMs: 60_000, intervalMs: 200 });
    await waitFor("nothing is written", isQuiet, { timeoutMs: 60_000 });
    await using calls = await followCalls();
    await sleep(IDLE_MS);
    const idle = await calls.take();
    requests = 0;
    await patch(connection);
    await untilEditIsWritten(isQuiet);
    return coveredFiles(await calls.take(), idle);
  } finally {
    await plane.close();
  }
}

/** Polls without calling functions of our packages, which would be counted. */
async function untilEditIsWritten(isQuiet: () => boolean): Promise<void> {
  const deadline = performance.now() + TIMEOUT_MS;
  while (!isQuiet()) {
    if (performance.now() > deadline) throw new Error(`the edit is not written within ${TIMEOUT_MS} ms`);
    await sleep(100);
  }
}

async function crdOf(): Promise<object> {
  const { parse } = await import("yaml");
  return parse(await readFile(CRD, "utf8")) as object;
}

const PAGE = `/apis/example.com/v1/namespaces/${NAME.namespace}/webpages/${NAME.name}`;

async function read(connection: Connection): Promise<{ readonly status?: { readonly ready?: boolean } }> {
  return apiRequestOrThrow(connection, `GET ${PAGE}`);
}

async function patch(connection: Connection): Promise<void> {
  const body = { spec: { html: "<h1>edited</h1>" } };
  await apiRequestOrThrow(connection, `PATCH ${PAGE}`, { body, contentType: "application/merge-patch+json" });
}

/** Returns the files of a PATCH and a GET. The first request of each kind is not counted, because it fills caches. */
async function followServer(): Promise<readonly [CoveredFiles, CoveredFiles]> {
  await using server = await startApiServer({ tls: false });
  const path = "/api/v1/namespaces/default/configmaps";
  await apiRequestOrThrow(server, `POST ${path}`, { body: { metadata: { name: "one" }, data: { a: "0" } } });
  const write = (a: string) =>
    apiRequestOrThrow(server, `PATCH ${path}/one`, {
      body: { data: { a } },
      contentType: "application/merge-patch+json",
    });
  const get = () => apiRequestOrThrow(server, `GET ${path}/one`);
  await write("1");
  await get();
  await using calls = await followCalls();
  await calls.take();
  await write("2");
  const patched = await calls.take();
  await get();
  return [coveredFiles(patched), coveredFiles(await calls.take())];
}

async function followGenerate(): Promise<CoveredFiles> {
  await using folder = await createTemporaryFolder();
  const [project, coverage] = [join(folder.path, "project"), join(folder.path, "coverage")];
  await mkdir(project);
  for (const part of ["crds", "workflow.yaml"]) await cp(join(SAMPLE, part), join(project, part), { recursive: true });
  await writeFile(join(project, "package.json"), '{ "name": "project", "private": true, "type": "module" }\n');
  const command = [join(repositoryRoot, "generator/bin/gen-operator.js"), "generate"];
  const env = { ...process.env, NODE_V8_COVERAGE: coverage };
  await promisify(execFile)(process.execPath, command, { cwd: project, env });
  const files = (await readdir(coverage)).filter((name) => name.startsWith("coverage-"));
  const scripts = await Promise.all(
    files.map(async (name) => (JSON.parse(await readFile(join(coverage, name), "utf8")) as Coverage).result),
  );
  return coveredFiles(calledFunctions(scripts.flat()));
}

interface Coverage {
  readonly result: readonly ScriptCoverage[];
}
