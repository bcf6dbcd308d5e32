// The operators that ours is compared with. Their sources lie outside of this repository: one folder each, with this name.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildCache, buildOnce, type BuildStep } from "../operators/build-once.js";
import type { OperatorCommand } from "../operators/operator-process.js";

/** How one framework's implementation of the workload is built and started. */
interface Implementation {
  /** Its folder, and what it calls itself. Default: its name here */
  readonly folder?: string;
  /** The file by which its folder is known. */
  readonly file: string;
  readonly steps: readonly BuildStep[];
  /** What starts it; paths are relative to the folder that it was built in. */
  readonly start: { readonly program: string; readonly args: readonly string[] };
  readonly env?: { readonly [name: string]: string };
  /** What a reader has to know of how it is run. */
  readonly note?: string;
  /** Tells where it is built from where others of the same source are. */
  readonly variant?: string;
}

const clientNode = {
  file: "package.json",
  steps: [{ program: "npm", args: ["ci", "--no-audit", "--no-fund"] }],
  start: { program: "node", args: ["index.mjs"] },
} satisfies Implementation;

const implementations: { readonly [name: string]: Implementation } = {
  "controller-runtime": {
    file: "go.mod",
    steps: [
      {
        program: "go",
        args: ["build", "-mod=readonly", "-o", "webpage-operator", "."],
        env: { CGO_ENABLED: "0", GOWORK: "off" },
      },
    ],
    start: { program: "./webpage-operator", args: [] },
  },
  "kube-rs": {
    file: "Cargo.toml",
    steps: [
      {
        program: "cargo",
        // What was compiled of its dependencies outlives a change of its source.
        args: ["build", "--release", "--locked", "--target-dir", join(buildCache("kube-rs"), "target")],
      },
    ],
    start: { program: "../target/release/webpage-operator", args: [] },
  },
  josdk: {
    file: "pom.xml",
    steps: [{ program: "mvn", args: ["-q", "-B", "package"] }],
    start: { program: "java", args: ["-Xmx256m", "-XX:+UseSerialGC", "-jar", "target/josdk.jar"] },
    note: "JOSDK with -Xmx256m -XX:+UseSerialGC",
  },
  kopf: {
    file: "requirements.txt",
    steps: [
      { program: "python3", args: ["-m", "venv", ".venv"] },
      { program: ".venv/bin/pip", args: ["install", "--quiet", "--requirement", "requirements.txt"] },
    ],
    start: { program: ".venv/bin/kopf", args: ["run", "--quiet", "-A", "--standalone", "webpages.py"] },
  },
  "client-node": {
    ...clientNode,
    note: "client-node as it is, with a connection for each request",
  },
  "client-node-one-dispatcher": {
    ...clientNode,
    folder: "client-node",
    env: { SHARED_DISPATCHER: "1" },
    note: "client-node-one-dispatcher with a private method replaced, since no public option of it keeps connections (SHARED_DISPATCHER=1)",
  },
};

/** An implementation of a peer whose source is there. */
export interface Peer {
  readonly name: string;
  readonly note?: string;
  /** Builds it if that was not done before; throws if the tools for that are missing. */
  build(): Promise<OperatorCommand>;
}

/** Returns the peers whose source is in the folder, all of them unless some are named. */
export function findPeers(folder: string, names: readonly string[] = Object.keys(implementations)): Peer[] {
  return names
    .filter((name) => existsSync(join(folder, implementations[name]!.folder ?? name, implementations[name]!.file)))
    .map((name) => peerIn(folder, name, implementations[name]!));
}

/** Returns the operator of controller-runtime, if its source is there, so changed that it watches all objects of its kinds. */
export function findUnselectedPeers(folder: string): Peer[] {
  const name = "controller-runtime";
  const { steps, ...rest } = implementations[name]!;
  if (!existsSync(join(folder, name, rest.file))) return [];
  const change = "s/labels.SelectorFromSet(childLabels())/labels.Everything()/";
  const changed = [{ program: "sed", args: ["-i", change, "main.go"] }, ...steps];
  return [peerIn(folder, name, { ...rest, steps: changed, variant: "-unselected" })];
}

function peerIn(folder: string, name: string, implementation: Implementation): Peer {
  const { folder: source = name, steps, start, env, note, variant = "" } = implementation;
  return {
    name,
    ...(note === undefined ? {} : { note }),
    async build() {
      const built = await buildOnce({ name: source + variant, source: join(folder, source), steps });
      // A name without a slash is looked for where all programs are.
      const program = start.program.includes("/") ? join(built, start.program) : start.program;
      return { name: source, program, args: start.args, cwd: built, ...(env === undefined ? {} : { env }) };
    },
  };
}
