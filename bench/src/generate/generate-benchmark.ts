// gen-operator as users run it, compared with cdk8s, which also generates TypeScript from CRDs.
import { execFile } from "node:child_process";
import { generateTypes } from "#generator/generate-types.js";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { promisify } from "node:util";
import { repositoryRoot } from "#test/support/repository.js";
import { quantile, type BenchmarkResult, type Measurement } from "../measurement.js";
import { megabytesOf, readCorpus, writeManyCrds, writeProject } from "./many-crds.js";
import { measurePrograms, type NodeProgram, type ProgramCost } from "./program-cost.js";

const RUNS = 5;
/** For measurements that take seconds. */
const LONG_RUNS = 3;
/** `generate` does not trust the modification time of a file that was written within this time, so wait longer. */
const SETTLE_MS = 3_000;
const CDK8S = "cdk8s-cli@2.207.60";
// The bundled package, as published. Node.js resolves its dependencies from the enclosing node_modules.
const PUBLISHED = join(repositoryRoot, "node_modules/.cache/gen-operator-published");
const COMMAND = join(PUBLISHED, "bin/gen-operator.js");
const SAMPLE = join(repositoryRoot, "fixtures/samples/webpage");
const CORPUS = process.env["CRD_CORPUS"] ?? join(repositoryRoot, "../shared/corpus");

/** CRDs of increasing size. Those of other projects are measured only if the corpus is present. */
const CRDS = [
  { name: "WebPage", file: join(SAMPLE, "crds/webpages.example.com.yaml") },
  { name: "cert-manager Certificate", file: join(CORPUS, "cert-manager/certificates.cert-manager.io.yaml") },
  { name: "CloudNativePG Cluster", file: join(CORPUS, "cloudnative-pg/clusters.postgresql.cnpg.io.yaml") },
];

/**
 * Measures the generation of a sample project, and of types for single CRDs in comparison with cdk8s. Skipped measurements are listed in the notes.
 */
export async function measureGenerators(): Promise<BenchmarkResult> {
  const folder = await mkdtemp(join(tmpdir(), "gen-operator-bench-"));
  const crds = CRDS.filter(({ file }) => existsSync(file));
  const notes = [
    `medians of ${RUNS} runs of whole processes, from start to end; memory is of the largest process`,
    "the project has five kinds, a condition that is type-checked and stubs; cdk8s has no such thing and imports its CRD alone",
    "nothing there: no code and no memory of the project; what V8 compiled of TypeScript and prettier is kept, from the first run on",
    "the types of a CRD: a class with what checks and defaults it; cdk8s writes constructs",
    ...CRDS.filter((crd) => !crds.includes(crd)).map(
      ({ name, file }) => `${name} was not measured: ${file} is not there`,
    ),
  ];
  try {
    await promisify(execFile)(process.execPath, [join(repositoryRoot, "generator/bundle.js"), PUBLISHED]);
    const peer = await installPeer(folder).catch((error: unknown) => {
      notes.push(
        `the peer was not measured: ${CDK8S} could not be installed: ${String(error).split("\n", 1).join("")}`,
      );
      return undefined;
    });
    const measurements = await measureProject(folder);
    for (const crd of crds) measurements.push(...(await measureCrd(crd, peer, folder)));
    const corpus = await readCorpus(CORPUS);
    if (corpus.length === 0) notes.push(`many CRDs were not measured: ${CORPUS} has none (CRD_CORPUS)`);
    else
      measurements.push(...(await measureMany(corpus, peer, folder)), ...(await measureLargeProject(corpus, folder)));
    return { benchmark: "generate", peers: ["cdk8s import"], notes, measurements };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Installs cdk8s and returns the path of its command. */
async function installPeer(folder: string): Promise<string> {
  const cwd = join(folder, "peer");
  await mkdir(cwd);
  await writeFile(join(cwd, "package.json"), '{ "private": true }\n');
  await promisify(execFile)("npm", ["install", "--no-audit", "--no-fund", "--prefer-offline", CDK8S], { cwd });
  return join(cwd, "node_modules/cdk8s-cli/bin/cdk8s");
}

async function measureProject(folder: string): Promise<Measurement[]> {
  const project = join(folder, "project");
  for (const part of ["crds", "workflow.yaml"]) await cp(join(SAMPLE, part), join(project, part), { recursive: true });
  const generate = (...options: string[]): NodeProgram => ({
    args: [COMMAND, "generate", ...options],
    folder: project,
  });
  await writeFile(join(project, "package.json"), '{ "name": "project", "private": true, "type": "module" }\n');
  const programs = {
    cold: { ...generate(), prepare: () => clear(project) },
    warm: generate(),
    check: generate("--check"),
  };
  const { cold, warm, check } = await measurePrograms(programs, RUNS, folder);
  return [
    ...rowsOf("project, nothing there", cold),
    ...rowsOf("project, nothing to change", warm),
    ...rowsOf("project, --check", check),
  ];
}

/** Removes generated files and the caches of earlier runs. */
async function clear(project: string): Promise<void> {
  for (const part of ["src", "deploy", "test", "node_modules"]) await setAside(join(project, part));
}

let setAsides = 0;

/**
 * Renames the output of a run instead of deleting it. For some minutes after a deletion, ext4 skips the free inodes one by one each time it creates a
 * file, which would distort the measurements.
 */
async function setAside(path: string): Promise<void> {
  if (existsSync(path)) await rename(path, `${path}-${++setAsides}`);
}

async function measureCrd(
  { name, file }: { name: string; file: string },
  peer: string | undefined,
  folder: string,
): Promise<Measurement[]> {
  const out = join(folder, "types");
  const clear = () => setAside(out);
  const args = [COMMAND, "types", file, "--out", out];
  const ours: NodeProgram = { args, folder, prepare: clear };
  const costs: { ours: ProgramCost; peer?: ProgramCost } =
    peer === undefined
      ? await measurePrograms({ ours }, RUNS, folder)
      : await measurePrograms({ ours, peer: importOf(peer, file, out) }, RUNS, folder);
  return [...rowsOf(`types of ${name}`, costs.ours, costs.peer), await measureInProcess(name, file, out)];
}

/** Measures about 300 CRDs, copies of those in the corpus, in one process for each generator. */
async function measureMany(
  corpus: Awaited<ReturnType<typeof readCorpus>>,
  peer: string | undefined,
  folder: string,
): Promise<Measurement[]> {
  const [file, out, peerOut] = ["many.yaml", "many-types", "many-imports"].map((name) => join(folder, name)) as [
    string,
    string,
    string,
  ];
  const count = await writeManyCrds(corpus, Math.ceil(300 / corpus.length), file);
  const clear = () => setAside(out);
  const ours: NodeProgram = { args: [COMMAND, "types", file, "--out", out], folder, prepare: clear };
  const costs: { ours: ProgramCost; peer?: ProgramCost } =
    peer === undefined
      ? await measurePrograms({ ours }, LONG_RUNS, folder)
      : await measurePrograms({ ours, peer: importOf(peer, file, peerOut) }, LONG_RUNS, folder);
  const bytes = {
    ...{ name: `types of ${count} CRDs: output`, unit: "MB", better: "lower" as const },
    ours: await megabytesOf(out, ".ts"),
    ...(peer === undefined ? {} : { peers: [await megabytesOf(peerOut, ".ts")] }),
  };
  return [...rowsOf(`types of ${count} CRDs`, costs.ours, costs.peer), bytes];
}

/** Measures a project with fifty controllers in which little or nothing changes. */
async function measureLargeProject(
  corpus: Awaited<ReturnType<typeof readCorpus>>,
  folder: string,
): Promise<Measurement[]> {
  // The ConfigMap dependent of a cluster-scoped primary would need a namespace.
  const namespaced = corpus.filter(({ spec }) => spec.scope === "Namespaced");
  const kinds = new Map(namespaced.map((crd) => [crd.spec.names.kind, crd]));
  const { folder: project, changed } = await writeProject([...kinds.values()].slice(0, 50), join(folder, "large"));
  const generate = (...options: string[]): NodeProgram => ({
    args: [COMMAND, "generate", ...options],
    folder: project,
  });
  const check = generate("--check");
  const { first, next } = await measurePrograms(
    { first: { ...generate(), prepare: () => clear(project) }, next: check },
    LONG_RUNS,
    folder,
  );
  // Files that have just been written are read again, so the first check after the delay is the last one that reads them all.
  await setTimeout(SETTLE_MS);
  await measurePrograms({ check }, 1, folder);
  const { settled } = await measurePrograms({ settled: check }, RUNS, folder);
  let edits = 0;
  const edit = async () => {
    const text = await readFile(changed, "utf8");
    const description = /"description": "(edit \d+: )?/.exec(text)?.[0];
    if (description === undefined) throw new Error(`${changed} has no description`);
    await writeFile(
      changed,
      text.replace(description, () => `"description": "edit ${edits++}: `),
    );
  };
  const { one } = await measurePrograms({ one: { ...generate(), prepare: edit } }, RUNS, folder);
  return [
    ...rowsOf("50 controllers, nothing there", first),
    ...rowsOf("50 controllers, --check right after that", next),
    ...rowsOf("50 controllers, --check of nothing changed", settled),
    ...rowsOf("50 controllers, one CRD changed", one),
  ];
}

function importOf(peer: string, file: string, out: string): NodeProgram {
  const options = ["-l", "typescript", "-o", out, "--check-upgrade=false", "--no-save"];
  const prepare = () => setAside(out);
  return { args: [peer, "import", file, ...options], folder: join(out, ".."), prepare };
}

/** Measures the generation of types for a CRD in a process with loaded libraries and warm code. */
async function measureInProcess(name: string, file: string, out: string): Promise<Measurement> {
  const samples: number[] = [];
  for (let run = 0; run <= RUNS; run++) {
    await setAside(out);
    const startedAt = performance.now();
    const { report } = await generateTypes({ files: [file], out });
    if (report === undefined) throw new Error(`the types of ${name} were not generated`);
    if (run > 0) samples.push(performance.now() - startedAt);
  }
  return { name: `types of ${name}: in a running process`, unit: "ms", ours: quantile(samples, 0.5), better: "lower" };
}

function rowsOf(what: string, ours: ProgramCost, peer?: ProgramCost): Measurement[] {
  const figures = [
    ["wallSeconds", "wall", "s"],
    ["cpuSeconds", "CPU", "s"],
    ["peakMb", "peak memory", "MB"],
  ] as const;
  return figures.map(([figure, name, unit]) => ({
    name: `${what}: ${name}`,
    unit,
    better: "lower",
    ours: ours[figure],
    ...(peer === undefined ? {} : { peers: [peer[figure]] }),
  }));
}
