// A sample as it runs in a cluster: what `generate` computed is applied, and its compiled program runs as its service account.
import { execFileSync, spawn } from "node:child_process";
import { join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow, type Connection } from "../../support/api-request.js";
import { findBinaryOrThrow } from "../../support/binaries.js";
import type { ControlPlane } from "../../support/control-plane.js";
import { writeKubeconfig } from "../../support/kubeconfig.js";
import { repositoryRoot } from "../../support/repository.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

/** A process of an operator. */
export interface DeployedReplica extends AsyncDisposable {
  /** What it wrote to its log, in lines. */
  readonly log: readonly string[];
  /** Waits until a line has a text. */
  untilLogged(text: string): Promise<void>;
  /** Ends it as the kubelet does; resolves to its exit code. */
  terminate(): Promise<number | null>;
}

/** A sample whose objects are applied. */
export interface DeployedSample {
  readonly namespace: string;
  /** The name of its service account, as the API server writes it down. */
  readonly user: string;
  /** How the service account asks the API server. */
  readonly connection: Connection;
  /** Starts a replica with the flags of the Deployment, in this environment. */
  start(environment?: { readonly [name: string]: string }): Promise<DeployedReplica>;
}

/** Applies `deploy/generated` of a sample, and returns what starts it. */
export async function deploySample(plane: ControlPlane, name: string): Promise<DeployedSample> {
  const folder = join(repositoryRoot, "fixtures/samples", name);
  const namespace = `${name}-system`;
  const kubectl = (...args: string[]) =>
    execFileSync(findBinaryOrThrow("kubectl"), ["--kubeconfig", plane.kubeconfig, ...args], { encoding: "utf8" });
  await apiRequestOrThrow(plane, "POST /api/v1/namespaces", { body: { metadata: { name: namespace } } });
  kubectl("apply", "-k", join(folder, "deploy/generated"));
  // One of them is the primary of a controller that is written by hand.
  kubectl("apply", "--server-side", "--force-conflicts", "-f", join(folder, "crds"));
  kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s");
  const path = `POST /api/v1/namespaces/${namespace}/serviceaccounts/${name}/token`;
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 3600 } };
  const { status } = await apiRequestOrThrow<{ status: { token: string } }>(plane, path, { body: request });
  const { url, ca } = plane;
  const connection = { url, ca, token: status.token };
  return {
    ...{ namespace, connection },
    user: `system:serviceaccount:${namespace}:${name}`,
    async start(environment = {}) {
      const own = await createTemporaryFolder();
      const kubeconfig = join(own.path, "kubeconfig");
      await writeKubeconfig(kubeconfig, connection);
      const flags = [
        "--leader-elect",
        `--leader-election-id=${name}-leader`,
        `--leader-election-namespace=${namespace}`,
        "--check-crds",
        `--kubeconfig=${kubeconfig}`,
      ];
      return startProgram(join(folder, "dist/src/main.js"), flags, {
        environment,
        dispose: async () => own[Symbol.asyncDispose](),
      });
    },
  };
}

interface ProgramOptions {
  readonly environment: { readonly [name: string]: string };
  dispose(): Promise<void>;
}

function startProgram(
  main: string,
  flags: readonly string[],
  { environment, dispose }: ProgramOptions,
): DeployedReplica {
  const child = spawn(process.execPath, ["--enable-source-maps", main, ...flags], {
    env: { ...process.env, ...environment, LOG_FORMAT: "json" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const log: string[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on(
      "data",
      (chunk: Buffer) =>
        void log.push(
          ...chunk
            .toString()
            .split("\n")
            .filter((line) => line !== ""),
        ),
    );
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  let hasEnded = false;
  void ended.then(() => (hasEnded = true));
  return {
    log,
    untilLogged: async (text) => {
      const isLogged = () => {
        if (hasEnded) throw new Error(`it ended before it said ${text}:\n${log.slice(-5).join("\n")}`);
        return log.some((line) => line.includes(text));
      };
      await waitFor(`it says ${text}`, isLogged, { timeoutMs: 60_000 });
    },
    async terminate() {
      child.kill("SIGTERM");
      return ended;
    },
    async [Symbol.asyncDispose]() {
      if (!hasEnded) child.kill("SIGKILL");
      await ended;
      await dispose();
    },
  };
}
