import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, join } from "node:path";
import { TerminalError, findError } from "../base/errors.js";
import { type Logger, messageOf } from "../base/logger.js";
import { Backoff, type Clock, sleep, withDeadline } from "../base/wait.js";
import { type Connection, proxyFromEnvironment } from "./connection.js";
import { checkNotEmpty, createRenewedCredentials, readTokenFile } from "./credential-refresh.js";

// https://kubernetes.io/docs/tasks/run-application/access-api-from-pod/
const SERVICE_ACCOUNT_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount";

const FIRST_READ_MS = 70_000;
// Backoff adds jitter of up to 100%, so a pause is at most 30 s.
const CONNECT_BACKOFF = { initialMs: 1_000, factor: 2, maxMs: 15_000 };

/** Options of loadConnection. */
export interface LoadConnectionOptions {
  /** The kubeconfig file. If set, no other source is tried. */
  readonly kubeconfig?: string;
  readonly context?: string;
  readonly env?: NodeJS.ProcessEnv;
  /**
   * Receives a warning when a token file, a certificate or a plugin cannot be refreshed and the previous credentials stay in use. Default: no
   * warning; requests fail once the server rejects the credentials
   *
   * @example logger: createLogger("warn")
   */
  readonly logger?: Logger;
}

/**
 * Finds a connection in the order of controller-runtime: the kubeconfig of the options, `KUBECONFIG`, the service account of a pod, `~/.kube/config`.
 * Throws a TerminalError if there is none, if a kubeconfig that is named does not exist, or if a credential is not a valid header value.
 */
export async function loadConnection(options: LoadConnectionOptions = {}): Promise<Connection> {
  const { kubeconfig, env = process.env } = options;
  // Loaded only if there is a kubeconfig, which a process in a cluster usually does not have.
  const fromFiles = async (files: readonly string[]) =>
    (await import("./kubeconfig.js")).readKubeconfig(files, options);
  if (kubeconfig !== undefined) return fromFiles([kubeconfig]);
  const listed = (env["KUBECONFIG"] ?? "").split(delimiter).filter((file) => file !== "");
  if (listed.length > 0) {
    const files = listed.filter((file) => existsSync(file));
    if (files.length === 0) throw new TerminalError(`KUBECONFIG names ${listed.join(", ")}, which does not exist`);
    return fromFiles(files);
  }
  const inCluster = createInClusterConnection(env, SERVICE_ACCOUNT_FOLDER, options.logger);
  if (inCluster !== undefined) return inCluster;
  const home = join(homedir(), ".kube", "config");
  if (existsSync(home)) return fromFiles([home]);
  if (isInPod(env))
    throw new TerminalError(
      `no cluster to connect to: this is a pod, but its service account has no token: ${join(SERVICE_ACCOUNT_FOLDER, "token")} does not exist; ` +
        "set automountServiceAccountToken: true, or set KUBECONFIG to the path of a kubeconfig file",
    );
  throw new TerminalError(
    `no cluster to connect to: KUBECONFIG is not set, this is not a pod (KUBERNETES_SERVICE_HOST is not set) and ${home} does not exist; ` +
      "set KUBECONFIG to the path of a kubeconfig file",
  );
}

/**
 * Finds a connection like `loadConnection`, and retries with backoff until the signal is aborted, because a file may be incomplete while it is being
 * written. Throws a TerminalError immediately: retries do not help if there is no cluster, a kubeconfig does not exist, or a token is not a valid
 * header value.
 */
export async function findConnection(
  kubeconfig: string | undefined,
  { logger, signal, clock }: { readonly logger: Logger; readonly signal: AbortSignal; readonly clock?: Clock },
): Promise<Connection> {
  const backoff = new Backoff(CONNECT_BACKOFF);
  for (;;) {
    try {
      const connection = await loadConnection(kubeconfig === undefined ? { logger } : { kubeconfig, logger });
      await checkCredentials(connection, signal);
      return connection;
    } catch (error) {
      if (findError(error, "TerminalError") !== undefined) throw error;
      const retryAfterMs = backoff.next();
      logger.warn({ retryAfterMs: Math.round(retryAfterMs) }, `${messageOf(error)}; trying again`);
      await sleep(retryAfterMs, signal, clock).catch(() => {
        throw error;
      });
    }
  }
}

// Reads the credentials once to detect terminal errors. Other errors are left to the requests, which retry them.
async function checkCredentials({ credentials, origin }: Connection, signal: AbortSignal): Promise<void> {
  const message = `the credentials function of ${origin} did not answer within ${FIRST_READ_MS / 1000} s`;
  try {
    await withDeadline(async () => credentials({ isRejected: false }), { timeoutMs: FIRST_READ_MS, message }, [signal]);
  } catch (error) {
    if (findError(error, "TerminalError") !== undefined) throw error;
  }
}

/** Returns whether this process runs in a pod. */
export function isInPod(env: NodeJS.ProcessEnv = process.env): boolean {
  return (env["KUBERNETES_SERVICE_HOST"] ?? "") !== "";
}

/** Creates the connection of a pod's service account. Returns undefined outside of a cluster. */
export function createInClusterConnection(
  env: NodeJS.ProcessEnv = process.env,
  folder: string = SERVICE_ACCOUNT_FOLDER,
  logger?: Logger,
): Connection | undefined {
  const host = env["KUBERNETES_SERVICE_HOST"] ?? "";
  const port = env["KUBERNETES_SERVICE_PORT"] ?? "443";
  const tokenFile = join(folder, "token");
  if (!isInPod(env) || !existsSync(tokenFile)) return undefined;
  const read = () => readTokenFile(tokenFile);
  const namespaceFile = join(folder, "namespace");
  const caFile = join(folder, "ca.crt");
  const server = `https://${host.includes(":") ? `[${host}]` : host}:${port}`;
  return {
    server,
    origin: `service account in ${folder}`,
    isInCluster: true,
    ca: checkNotEmpty(caFile, readFileSync(caFile)),
    caFile,
    proxyUrl: proxyFromEnvironment(server, env),
    namespace: existsSync(namespaceFile)
      ? checkNotEmpty(namespaceFile, readFileSync(namespaceFile, "utf8").trim())
      : undefined,
    credentials: createRenewedCredentials({ what: `reading the token file ${tokenFile}`, read, logger }),
  };
}
