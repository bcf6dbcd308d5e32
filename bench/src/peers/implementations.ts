// The peer operators. Their sources are outside of this repository: one folder each, with the name of the peer unless `folder` is set.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { buildCache, buildOnce, type BuildStep } from "../operators/build-once.js";
import type { OperatorCommand } from "../operators/operator-process.js";

/** How to build and start the implementation of the workload in a framework. */
interface Implementation {
  /** Its folder, and the name under which it labels its objects. Default: the name of the peer */
  readonly folder?: string;
  /** A file that the folder must contain. */
  readonly file: string;
  readonly steps: readonly BuildStep[];
  /** The command that starts it; paths are relative to the folder of the build. */
  readonly start: { readonly program: string; readonly args: readonly string[] };
  readonly env?: { readonly [name: string]: string };
  /** A fact that is needed to interpret its figures. */
  readonly note?: string;
  /** A suffix that distinguishes the build from others of the same source. */
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
        // Compiled dependencies are kept when the source changes.
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

/** A peer whose source is available. */
export interface Peer {
  readonly name: string;
  readonly note?: string;
  /** Builds the operator unless it is cached; rejects if the build tools are missing. */
  build(): Promise<OperatorCommand>;
}

/** Returns the peers whose sources are in the folder. Default: all */
export function findPeers(folder: string, names: readonly string[] = Object.keys(implementations)): Peer[] {
  return names
    .filter((name) => existsSync(join(folder, implementations[name]!.folder ?? name, implementations[name]!.file)))
    .map((name) => peerIn(folder, name, implementations[name]!));
}

/** Returns the controller-runtime operator, if its source is available, patched to watch all objects of its kinds. */
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
      // A name without a slash is looked up in PATH.
      const program = start.program.includes("/") ? join(built, start.program) : start.program;
      return { name: source, program, args: start.args, cwd: built, ...(env === undefined ? {} : { env }) };
    },
  };
}
