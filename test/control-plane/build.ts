// node test/dist/control-plane/build.js builds etcd, kube-apiserver, kube-controller-manager and kubectl from the modules that
// go.mod pins, into a cache outside of the checkout. What is already there, or found elsewhere (support/machine/binaries.ts), is not
// built again. The first build takes about seven minutes on two cores, and Helm, whose tests are skipped without it, another three.
// With --check it builds nothing, and exits with code 1 when a program of the control plane is missing.
import { spawn } from "node:child_process";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  binaryCache,
  binaryPackages,
  findBinary,
  kubernetesVersion,
  toolPackages,
  type BinaryName,
} from "../support/machine/binaries.js";
import { repositoryRoot } from "../support/repository.js";

/** Builds the programs that are missing; the names of those that were built. */
export async function buildControlPlane(folder = binaryCache()): Promise<BinaryName[]> {
  const missing = missingBinaries();
  await mkdir(folder, { recursive: true });
  for (const name of missing) {
    console.log(`building ${name} ${name === "etcd" ? "" : kubernetesVersion()}`.trimEnd());
    await build({ package: binaryPackages[name], module: "test/control-plane" }, join(folder, name));
  }
  return missing;
}

/** Builds the tools that are missing; says which ones cannot be built. */
export async function buildTools(folder = binaryCache()): Promise<BinaryName[]> {
  const built: BinaryName[] = [];
  for (const [name, source] of Object.entries(toolPackages) as [keyof typeof toolPackages, GoSource][]) {
    if (findBinary(name) !== undefined) continue;
    console.log(`building ${name}`);
    try {
      await build(source, join(folder, name));
      built.push(name);
    } catch (error) {
      console.log(`${name} cannot be built, so its tests are skipped: ${(error as Error).message}`);
    }
  }
  return built;
}

function missingBinaries(): (keyof typeof binaryPackages)[] {
  const names = Object.keys(binaryPackages) as (keyof typeof binaryPackages)[];
  return names.filter((name) => findBinary(name) === undefined);
}

interface GoSource {
  readonly package: string;
  /** The folder of its go.mod. */
  readonly module: string;
}

async function build(source: GoSource, path: string): Promise<void> {
  // Built under another name and renamed, so that a build that was cut off, or runs twice, never leaves half a program.
  const unfinished = `${path}.${process.pid}.building`;
  try {
    const args = ["build", "-trimpath", "-ldflags", linkerFlags(), "-o", unfinished, source.package];
    await runGo(args, join(repositoryRoot, source.module));
    await rename(unfinished, path);
  } finally {
    await rm(unfinished, { force: true });
  }
}

/** Without the version stamp kube-apiserver calls itself v0.0.0-master, which some clients refuse. */
function linkerFlags(): string {
  const version = kubernetesVersion();
  const [major, minor] = version.slice(1).split(".");
  const stamp = "k8s.io/component-base/version";
  return `-s -w -X ${stamp}.gitVersion=${version} -X ${stamp}.gitMajor=${major} -X ${stamp}.gitMinor=${minor}`;
}

function runGo(args: string[], cwd: string): Promise<void> {
  return new Promise((done, fail) => {
    const go = spawn("go", args, {
      cwd,
      env: { ...process.env, CGO_ENABLED: "0", GOWORK: "off" },
      stdio: ["ignore", "inherit", "inherit"],
    });
    go.once("error", fail);
    go.once("exit", (code) => (code === 0 ? done() : fail(new Error(`go ${args[0]} exited with code ${code}`))));
  });
}

async function main(args: string[]): Promise<void> {
  if (args.includes("--check")) {
    const missing = missingBinaries();
    if (missing.length === 0) return console.log("the control plane is already built");
    console.log(`missing: ${missing.join(", ")}`);
    process.exitCode = 1;
    return;
  }
  const built = [...(await buildControlPlane()), ...(await buildTools())];
  console.log(
    built.length > 0 ? `built ${built.join(", ")} into ${binaryCache()}` : "the control plane is already built",
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main(process.argv.slice(2));
