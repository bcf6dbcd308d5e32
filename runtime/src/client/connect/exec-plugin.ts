import { execFile, type ExecFileException } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";
import { objectIn } from "../../base/kubernetes-object.js";
import type { Logger } from "../../base/logger.js";
import { checkHeaderValue, type Connection } from "./connection.js";
import { createRenewedCredentials, type ReadCredentials } from "./renewed-credentials.js";

/** The plugin of a kubeconfig user: a program that prints credentials. */
export interface ExecPlugin {
  readonly apiVersion?: string;
  readonly command?: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
  readonly interactiveMode?: string;
}

interface ExecPluginContext {
  /** The folder of the kubeconfig, which a command with a slash is relative to. */
  readonly folder: string;
  readonly origin: string;
  /** The cluster as the plugin is told about it, if it asks for that. */
  readonly cluster: object;
  readonly logger?: Logger | undefined;
}

/** What a plugin prints; https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins */
interface ExecCredential {
  readonly status?: {
    readonly [field in "token" | "clientCertificateData" | "clientKeyData" | "expirationTimestamp"]?: string;
  };
}

/** Creates credentials that a program prints; it runs again when they expire, and when the server rejects them. */
export function createExecCredentials(plugin: ExecPlugin, context: ExecPluginContext): Connection["credentials"] {
  const { command = "", interactiveMode } = plugin;
  const what = `the authentication plugin of ${context.origin}`;
  if (command === "") throw new Error(`${what} states no command`);
  if (interactiveMode === "Always")
    throw new Error(`${what}, ${command}, needs somebody who answers it: its interactiveMode is Always`);
  const { logger } = context;
  return createRenewedCredentials({ what, everyMs: Infinity, read: (signal) => run(plugin, context, signal), logger });
}

async function run(plugin: ExecPlugin, context: ExecPluginContext, signal: AbortSignal): Promise<ReadCredentials> {
  const { apiVersion = "client.authentication.k8s.io/v1", command = "", args, env, installHint } = plugin;
  const spec = { interactive: false, ...(plugin.provideClusterInfo === true && { cluster: context.cluster }) };
  const info = JSON.stringify({ apiVersion, kind: "ExecCredential", spec });
  const variables = Object.fromEntries((env ?? []).map(({ name, value }) => [name, value]));
  const path = command.includes("/") ? resolve(context.folder, command) : command;
  const running = promisify(execFile)(path, args ?? [], {
    env: { ...process.env, ...variables, KUBERNETES_EXEC_INFO: info },
    maxBuffer: 1 << 20,
    signal,
    killSignal: "SIGKILL",
  });
  running.child.stdin?.end();
  const { stdout } = await running.catch((error: ExecFileException) => {
    const hint = error.code === "ENOENT" && installHint ? `; ${installHint}` : "";
    const text = (error.stderr?.trim() || error.message).replace(/\s*\n\s*/g, " ");
    // The message of the error repeats what the plugin has printed.
    throw new Error(`${command}: ${text}${hint}`);
  });
  return credentialsIn(stdout, command);
}

function credentialsIn(output: string, command: string): ReadCredentials {
  const printed = objectIn<ExecCredential>(output);
  if (printed === undefined) throw new Error(`${command} printed no ExecCredential`);
  const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = printed.status ?? {};
  if (!token && (!cert || !key)) throw new Error(`${command} printed neither a token nor a certificate with its key`);
  checkHeaderValue(token ?? "", `the token that ${command} printed`);
  const expiresAt = Date.parse(expirationTimestamp ?? "") || undefined;
  return { authorization: token ? `Bearer ${token.trim()}` : undefined, ...(cert && key && { cert, key }), expiresAt };
}
