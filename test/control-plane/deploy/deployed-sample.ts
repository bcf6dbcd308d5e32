// A sample as it runs in a cluster: its manifests are applied, and its compiled program runs as a pod of its Deployment would: with these
// arguments and settings, and the token of its service account where the kubelet puts it.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow, type Connection } from "../../support/api/api-request.js";
import { findBinaryOrThrow } from "../../support/machine/binaries.js";
import type { ControlPlane } from "../../support/machine/control-plane.js";
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
  /** Starts a pod, with more in its environment. */
  start(environment?: { readonly [name: string]: string }): Promise<DeployedReplica>;
}

/** Applies `deploy/` of a sample, and returns what starts the pods of its Deployment. */
export async function deploySample(
  plane: ControlPlane,
  name: string,
  {
    hasCrds = false,
  }: { /** Whether the cluster has the CRDs already. Default: false */ readonly hasCrds?: boolean } = {},
): Promise<DeployedSample> {
  const folder = join(repositoryRoot, "fixtures/samples", name);
  const namespace = `${name}-system`;
  const kubectl = (...args: string[]) =>
    execFileSync(findBinaryOrThrow("kubectl"), ["--kubeconfig", plane.kubeconfig, ...args], { encoding: "utf8" });
  if (!hasCrds) kubectl("apply", "--server-side", "-k", join(folder, "deploy/crds"));
  kubectl("apply", "--server-side", "-k", join(folder, "deploy"));
  // One of them is the primary of a controller that is written by hand.
  if (!hasCrds) kubectl("apply", "--server-side", "--force-conflicts", "-f", join(folder, "crds"));
  kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s");
  const objectAt = <T>(path: string) => apiRequestOrThrow<T>(plane, `GET ${path}`);
  const { spec } = await objectAt<Deployment>(`/apis/apps/v1/namespaces/${namespace}/deployments/${name}`);
  const pod = spec.template.spec;
  const tokens = `POST /api/v1/namespaces/${namespace}/serviceaccounts/${pod.serviceAccountName}/token`;
  const request = { apiVersion: "authentication.k8s.io/v1", kind: "TokenRequest", spec: { expirationSeconds: 3600 } };
  const { status } = await apiRequestOrThrow<{ status: { token: string } }>(plane, tokens, { body: request });
  const { url, ca } = plane;
  const connection = { url, ca, token: status.token };
  return {
    ...{ namespace, connection },
    user: `system:serviceaccount:${namespace}:${pod.serviceAccountName}`,
    async start(environment = {}) {
      const own = await createTemporaryFolder();
      const [container] = pod.containers;
      if (container === undefined) throw new Error(`the Deployment ${name} has no container`);
      const config = container.volumeMounts.find(({ name }) => name === "settings")?.mountPath ?? "";
      const volume = pod.volumes.find(({ name }) => name === "settings")?.configMap?.name ?? "";
      const { data } = await objectAt<ConfigMap>(`/api/v1/namespaces/${namespace}/configmaps/${volume}`);
      const account = join(own.path, "account");
      for (const [file, text] of Object.entries({
        ...data,
        "account/token": status.token,
        "account/ca.crt": ca,
        "account/namespace": namespace,
      })) {
        await mkdir(dirname(join(own.path, file)), { recursive: true });
        await writeFile(join(own.path, file), text, { mode: 0o600 });
      }
      // Two pods are on this one machine, which has each port once.
      const ports = ["--health-probe-bind-address=127.0.0.1:0", "--metrics-bind-address=127.0.0.1:0"];
      const args = container.args.map((each) => each.replace(config, own.path));
      return startProgram([join(folder, "dist/src/main.js"), ...args, ...ports], {
        account,
        environment: {
          ...environment,
          ...{ KUBERNETES_SERVICE_HOST: new URL(url).hostname, KUBERNETES_SERVICE_PORT: new URL(url).port },
          POD_NAME: `${name}-${++pods}`,
        },
        dispose: async () => own[Symbol.asyncDispose](),
      });
    },
  };
}

/** Why no pod can be run like that here; nothing if one can. */
export function problemWithPods(): string | undefined {
  const { status } = spawnSync("unshare", ["--map-root-user", "--mount", "true"]);
  return status === 0 ? undefined : "this machine lets nobody mount a file system (unshare --map-root-user --mount)";
}

let pods = 0;

interface Deployment {
  readonly spec: {
    readonly template: {
      readonly spec: {
        readonly serviceAccountName: string;
        readonly containers: readonly {
          readonly args: readonly string[];
          readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
        }[];
        readonly volumes: readonly {
          readonly name: string;
          readonly configMap?: { readonly name: string };
        }[];
      };
    };
  };
}

interface ConfigMap {
  readonly data: { readonly [file: string]: string };
}

interface ProgramOptions {
  /** The folder with the files of the service account. */
  readonly account: string;
  readonly environment: { readonly [name: string]: string };
  dispose(): Promise<void>;
}

// The path is fixed, so the process gets a view of the file system of its own, in which its token is there.
const IN_POD = `
  mount -t tmpfs none /run || exit 125
  mkdir -p /var/run/secrets/kubernetes.io/serviceaccount
  cp "$1"/* /var/run/secrets/kubernetes.io/serviceaccount
  shift
  exec "$@"`;

function startProgram(args: readonly string[], { account, environment, dispose }: ProgramOptions): DeployedReplica {
  const command = [process.execPath, "--enable-source-maps", ...args];
  const child = spawn("unshare", ["--map-root-user", "--mount", "sh", "-c", IN_POD, "sh", account, ...command], {
    env: { PATH: process.env["PATH"], ...environment, LOG_FORMAT: "json" },
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
        if (log.some((line) => line.includes(text))) return true;
        if (hasEnded) throw new Error(`it ended before it said ${text}:\n${log.slice(-5).join("\n")}`);
        return false;
      };
      await waitFor(`it says ${text}`, isLogged, { timeoutMs: 20_000 });
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
