// A sample as it runs in a cluster: its manifests are applied, and its compiled program runs as a pod of its Deployment would: with these
// arguments and settings, and the token of its service account where the kubelet puts it.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { build } from "esbuild";
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequestOrThrow, type Connection } from "../../support/api/api-request.js";
import { findBinaryOrThrow } from "../../support/machine/binaries.js";
import type { ControlPlane } from "../../support/machine/control-plane.js";
import { imageCommand } from "../../support/projects/start-flags.js";
import { repositoryRoot } from "../../support/repository.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

/** A process of an operator. */
export interface DeployedReplica extends AsyncDisposable {
  /** What it wrote to its log, in lines. */
  readonly log: readonly string[];
  /** Waits until a line has a text. */
  untilLogged(text: string): Promise<void>;
  /** Reads a file as `kubectl exec` of the pod's program would. */
  readFile(path: string): Promise<string>;
  /** Resolves to its exit code, or null if a signal ended it. */
  readonly ended: Promise<number | null>;
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
  /**
   * Starts a pod as its Deployment describes it: with the bundle at /app, the command of the Dockerfile, the arguments, environment and volumes
   * of the Deployment, its user, and a root file system that cannot be written.
   */
  startContained(): Promise<DeployedReplica>;
}

/** How a sample is installed. */
export interface DeployOptions {
  /** Whether the cluster has the CRDs already. Default: false */
  readonly hasCrds?: boolean;
  /** Applies all but the CRDs. Default: `kubectl apply -k deploy` */
  install?(): Promise<void>;
}

/** Applies `deploy/` of a sample, and returns what starts the pods of its Deployment. */
export async function deploySample(
  plane: ControlPlane,
  name: string,
  { hasCrds = false, install }: DeployOptions = {},
): Promise<DeployedSample> {
  const folder = join(repositoryRoot, "fixtures/samples", name);
  const namespace = `${name}-system`;
  const kubectl = (...args: string[]) =>
    execFileSync(findBinaryOrThrow("kubectl"), ["--kubeconfig", plane.kubeconfig, ...args], { encoding: "utf8" });
  if (!hasCrds) kubectl("apply", "--server-side", "-k", join(folder, "deploy/crds"));
  if (install === undefined) kubectl("apply", "--server-side", "-k", join(folder, "deploy"));
  else await install();
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
    async startContained() {
      const own = await createTemporaryFolder();
      const [container] = pod.containers;
      if (container?.securityContext.readOnlyRootFilesystem !== true) throw new Error("its root can be written");
      const pathOf = (volume: string) => container.volumeMounts.find(({ name }) => name === volume)?.mountPath ?? "";
      const mounted: { [path: string]: string | Buffer } = {
        "/run/secrets/kubernetes.io/serviceaccount/token": status.token,
        "/run/secrets/kubernetes.io/serviceaccount/ca.crt": ca,
        "/run/secrets/kubernetes.io/serviceaccount/namespace": namespace,
      };
      for (const { name: volume, configMap, secret } of pod.volumes) {
        const source = configMap === undefined ? `secrets/${secret?.secretName}` : `configmaps/${configMap.name}`;
        if (configMap === undefined && secret === undefined) continue;
        const { data } = await objectAt<ConfigMap>(`/api/v1/namespaces/${namespace}/${source}`);
        for (const [file, text] of Object.entries(data))
          mounted[`${pathOf(volume)}/${file}`] = secret === undefined ? text : Buffer.from(text, "base64");
      }
      for (const [path, content] of Object.entries(mounted)) {
        await mkdir(dirname(join(own.path, "files", path)), { recursive: true });
        await writeFile(join(own.path, "files", path), content, { mode: 0o600 });
      }
      await mkdir(join(own.path, "root"));
      await build({
        ...{ entryPoints: { operator: join(folder, "dist/src/main.js") }, outdir: join(own.path, "app/dist/bundle") },
        ...{ outExtension: { ".js": ".mjs" }, bundle: true, splitting: true, format: "esm", platform: "node" },
        external: ["@kubernetes/client-node", "@opentelemetry/api"],
        banner: { js: REQUIRE },
      });
      const writable = pod.volumes.flatMap(({ name, emptyDir }) => (emptyDir === undefined ? [] : [pathOf(name)]));
      const { runAsUser, runAsGroup } = pod.securityContext;
      const inContainer = [IN_CONTAINER, "sh", own.path, writable.join(" "), `${runAsUser}`, `${runAsGroup}`];
      const [, ...entrypoint] = imageCommand;
      return startProcess(["sh", "-c", ...inContainer, process.execPath, ...entrypoint, ...container.args], {
        environment: {
          ...{ KUBERNETES_SERVICE_HOST: new URL(url).hostname, KUBERNETES_SERVICE_PORT: new URL(url).port },
          ...Object.fromEntries(container.env.map(({ name, value }) => [name, value ?? ""])),
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
          readonly env: readonly { readonly name: string; readonly value?: string }[];
          readonly securityContext: { readonly readOnlyRootFilesystem: boolean };
          readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
        }[];
        readonly securityContext: { readonly runAsUser: number; readonly runAsGroup: number };
        readonly volumes: readonly {
          readonly name: string;
          readonly configMap?: { readonly name: string };
          readonly secret?: { readonly secretName: string };
          readonly emptyDir?: object;
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

// CommonJS packages call require(), which ES modules lack.
const REQUIRE = 'import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);';

// Builds a root file system with the programs of this machine and the mounts of the pod, makes it read-only, and becomes the user of the pod.
const IN_CONTAINER = `
  own=$1 writable=$2 user=$3 group=$4
  shift 4
  mount -t tmpfs none "$own/root" && cd "$own/root" || exit 125
  mkdir -p usr etc proc dev app old
  for name in bin lib lib64; do
    if [ -L "/$name" ]; then cp -P "/$name" .; elif [ -d "/$name" ]; then mkdir "$name" && mount --rbind "/$name" "$name"; fi
  done
  for name in usr proc dev; do mount --rbind "/$name" "$name" || exit 125; done
  cp -r "$own/files/." . && cp -r "$own/app/." app && mkdir -p var && ln -s /run var/run || exit 125
  for path in $writable; do mkdir -p ".$path" && mount -t tmpfs -o mode=1777 none ".$path" || exit 125; done
  mount -o remount,ro none . || exit 125
  pivot_root . old && umount -l /old || exit 125
  cd /app
  exec unshare --user --map-user="$user" --map-group="$group" -- "$@"`;

function startProgram(args: readonly string[], { account, ...options }: ProgramOptions): DeployedReplica {
  const command = [process.execPath, "--enable-source-maps", ...args];
  return startProcess(["sh", "-c", IN_POD, "sh", account, ...command], options);
}

function startProcess(
  command: readonly string[],
  { environment, dispose }: Omit<ProgramOptions, "account">,
): DeployedReplica {
  const child = spawn("unshare", ["--map-root-user", "--mount", ...command], {
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
    ...{ log, ended },
    untilLogged: async (text) => {
      const isLogged = () => {
        if (log.some((line) => line.includes(text))) return true;
        if (hasEnded) throw new Error(`it ended before it said ${text}:\n${log.slice(-5).join("\n")}`);
        return false;
      };
      await waitFor(`it says ${text}`, isLogged, { timeoutMs: 20_000 });
    },
    readFile: (path) => readFile(`/proc/${child.pid}/root${path}`, "utf8"),
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
