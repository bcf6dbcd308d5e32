import { type ExecFileException, execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import type { RequestOptions } from "node:https";
import { dirname, resolve } from "node:path";
import { promisify } from "node:util";
import { load } from "js-yaml";
import { TerminalError } from "../base/errors.js";
import { objectIn } from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import {
  type Connection,
  type Credentials,
  type Impersonation,
  checkHeaderValue,
  checkImpersonation,
  checkProxyUrl,
  proxyFromEnvironment,
  serverOf,
} from "./connection.js";
import { type ReadCredentials, checkNotEmpty, createRenewedCredentials, readTokenFile } from "./credential-refresh.js";
import type { LoadConnectionOptions } from "./load-connection.js";

interface ReadKubeconfig {
  readonly file: string;
  readonly config: { readonly [member: string]: unknown };
}

/** An entry of a kubeconfig, with its origin. */
interface Found<Type extends EntryType> {
  readonly entry: Entry<Type>;
  /** The folder that relative paths in the entry refer to. */
  readonly folder: string;
  readonly where: string;
}

/** Reads the connection of a context from kubeconfig files. If several entries have the same name, the first one is used, as in client-go. */
export async function readKubeconfig(files: readonly string[], options: LoadConnectionOptions): Promise<Connection> {
  const configs = await Promise.all(files.map(parseFile));
  const current = configs.map(({ config }) => config["current-context"]).find(Boolean) as string;
  const contextName = options.context ?? current;
  const name = `kubeconfig ${files.join(", ")}`;
  if (!contextName) throw new Error(`${name} has no current-context; choose one with kubectl config use-context`);
  const context = findEntry(configs, "context", contextName);
  if (context === undefined) throw new Error(`${name} has no context "${contextName}"`);
  const cluster = findEntry(configs, "cluster", context.entry.cluster);
  if (cluster?.entry.server === undefined)
    throw new Error(`${context.where} names cluster "${context.entry.cluster}", which has no server`);
  if (!URL.canParse(cluster.entry.server))
    throw new Error(`${cluster.where}: the server, "${cluster.entry.server}", is no URL`);
  const { user: userName } = context.entry;
  if (userName === undefined) throw new Error(`${context.where} names no user`);
  const user = findEntry(configs, "user", userName);
  if (user === undefined) throw new Error(`${context.where} names user "${userName}", which does not exist`);
  const connection = {
    ...(await clusterOf(cluster, options.env)),
    origin: context.where,
    namespace: context.entry.namespace,
    impersonation: impersonationOf(user),
  };
  return {
    ...connection,
    credentials: await credentialsOf(user, cluster.entry, { ...connection, logger: options.logger }),
  };
}

async function clusterOf({ entry, folder, where }: Found<"cluster">, env: NodeJS.ProcessEnv | undefined) {
  const address = serverOf(entry.server!);
  const { "certificate-authority-data": caData, "proxy-url": proxyUrl } = entry;
  const caFile = caData === undefined ? entry["certificate-authority"] : undefined;
  return {
    ...address,
    ca: await readMaterial(caData, caFile, folder),
    caFile: caFile && resolve(folder, caFile),
    serverName: entry["tls-server-name"],
    skipTlsVerify: entry["insecure-skip-tls-verify"],
    proxyUrl: proxyUrl ? checkProxyUrl(proxyUrl, `${where}: proxy-url`) : proxyFromEnvironment(address.server, env),
  };
}

function impersonationOf({ entry, where }: Found<"user">): Impersonation | undefined {
  const { as: user, "as-uid": uid, "as-groups": groups, "as-user-extra": extra } = entry;
  if (user !== undefined) {
    const impersonation = { user, uid, groups, extra };
    const fields: { readonly [part: string]: string } = { user: "as", extra: "as-user-extra" };
    checkImpersonation(impersonation, (part) => `${where}: ${fields[part] ?? `as-${part}`}`);
    return impersonation;
  }
  const first = Object.keys(entry).find((field) => field.startsWith("as-"));
  if (first !== undefined) throw new Error(`${where}: ${first} needs the field as, which names the user`);
  return undefined;
}

async function credentialsOf(
  user: Found<"user">,
  { extensions, ...cluster }: Entry<"cluster">,
  { origin, ca, logger }: Omit<Connection, "credentials"> & { readonly logger: Logger | undefined },
): Promise<Connection["credentials"]> {
  const { entry, folder } = user;
  const isPlain = entry.token !== undefined || entry.tokenFile !== undefined;
  checkHeaderValue(entry.token ?? "", `${user.where}: token`);
  if (entry.exec !== undefined && !isPlain) {
    // https://kubernetes.io/docs/reference/config-api/client-authentication.v1/#client-authentication-k8s-io-v1-Cluster
    const { "certificate-authority": _file, ...rest } = cluster;
    const config = extensions?.find(({ name }) => name === "client.authentication.k8s.io/exec")?.extension;
    const data = ca && Buffer.from(ca).toString("base64");
    const stated = { ...rest, "certificate-authority-data": data, config };
    return createExecCredentials(entry.exec, { folder, origin, cluster: stated, logger });
  }
  if (entry["auth-provider"] !== undefined && !isPlain) return createAuthProviderCredentials(user, origin, logger);
  // Read immediately, so that missing files are reported at the start.
  const first = await plainCredentials(user);
  if (!entry.tokenFile && !entry["client-certificate"] && !entry["client-key"]) return () => first;
  const read = () => plainCredentials(user);
  return createRenewedCredentials({ what: `reading the credentials of ${origin}`, read, logger });
}

// For OIDC and cloud providers. Loads @kubernetes/client-node only here, because it needs about 60 MB of memory. It is an optional dependency.
async function createAuthProviderCredentials(
  user: Found<"user">,
  origin: string,
  logger: Logger | undefined,
): Promise<Connection["credentials"]> {
  const { KubeConfig } = await import("@kubernetes/client-node").catch((cause: unknown) => {
    throw errorOfClient(cause, user, origin);
  });
  const config = new KubeConfig();
  const contexts = [{ name: "context", context: { cluster: "cluster", user: "user" } }];
  const clusters = [{ name: "cluster", cluster: { server: "https://127.0.0.1" } }];
  const users = [{ name: "user", user: { ...user.entry, exec: undefined } }];
  config.loadFromString(JSON.stringify({ clusters, users, contexts, "current-context": "context" }));
  const read = async () => {
    const options: RequestOptions = {};
    await config.applyToHTTPSOptions(options);
    const { Authorization: authorization } = { ...options.headers } as { readonly Authorization?: string };
    const { cert, key } = options as Credentials;
    checkHeaderValue(authorization ?? "", `the Authorization header of ${user.where}: auth-provider`);
    return { authorization: authorization?.trim(), cert, key };
  };
  // Providers refresh their tokens themselves. Calling them once a minute detects an expiry in time.
  return createRenewedCredentials({ what: `the authentication plugin of ${origin}`, read, logger });
}

// Reports that the package is not installed. A missing dependency of the package is a different error.
function errorOfClient(cause: unknown, { entry, where }: Found<"user">, origin: string): unknown {
  const { code, message } = cause as NodeJS.ErrnoException;
  if (code !== "ERR_MODULE_NOT_FOUND" || !message.includes("'@kubernetes/client-node'")) return cause;
  const { name } = entry["auth-provider"] as { readonly name?: unknown };
  return new Error(
    `${origin}: the auth-provider "${String(name)}" of ${where} needs the package @kubernetes/client-node, which is not installed; ` +
      "run npm install --save-prod @kubernetes/client-node, which also puts it into the bundle of the operator",
    { cause },
  );
}

async function plainCredentials({ entry, folder }: Found<"user">): Promise<Credentials> {
  const cert = await readMaterial(entry["client-certificate-data"], entry["client-certificate"], folder);
  const key = await readMaterial(entry["client-key-data"], entry["client-key"], folder);
  return { cert, key, ...(await authorizationOf(entry, folder)) };
}

// As in client-go, tokenFile takes precedence over token.
async function authorizationOf(
  { tokenFile, token, username, password = "" }: Entry<"user">,
  folder: string,
): Promise<Credentials> {
  if (tokenFile !== undefined) return readTokenFile(resolve(folder, tokenFile));
  if (token !== undefined) return { authorization: `Bearer ${token.trim()}` };
  if (username === undefined) return {};
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}` };
}

async function parseFile(file: string): Promise<ReadKubeconfig> {
  const text = await readText(file, "kubeconfig");
  try {
    const config: unknown = load(text);
    if (typeof config === "object" && config !== null) return { file, config: config as ReadKubeconfig["config"] };
  } catch (error) {
    throw new Error(`kubeconfig ${file} is not valid YAML`, { cause: error });
  }
  throw new Error(`kubeconfig ${file} is empty, or not a mapping`);
}

function findEntry<Type extends EntryType>(
  configs: readonly ReadKubeconfig[],
  type: Type,
  name: string | undefined,
): Found<Type> | undefined {
  for (const { file, config } of configs) {
    const entries = (config[`${type}s`] ?? []) as readonly { readonly [member: string]: unknown }[];
    const named = entries.find((each) => each["name"] === name);
    if (named === undefined) continue;
    const where = `kubeconfig ${file}, ${type} "${name}"`;
    return { entry: checkFields(type, named[type] ?? {}, where), folder: dirname(file), where };
  }
  return undefined;
}

async function readMaterial(data: string | undefined, file: string | undefined, folder: string) {
  if (data !== undefined) return Buffer.from(data, "base64").toString("utf8");
  if (file === undefined) return undefined;
  const path = resolve(folder, file);
  return checkNotEmpty(path, await readText(path, "kubeconfig's"));
}

async function readText(file: string, what: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    const message = `cannot read the ${what} file ${file}`;
    // Other files that the kubeconfig refers to may be mounted later.
    if (what === "kubeconfig" && (error as NodeJS.ErrnoException).code === "ENOENT")
      throw new TerminalError(message, { cause: error });
    throw new Error(message, { cause: error });
  }
}

interface FieldType<Value> {
  readonly what: string;
  is(value: unknown): value is Value;
}

const text: FieldType<string> = { what: "a text", is: (value) => typeof value === "string" };
const flag: FieldType<boolean> = { what: "true or false", is: (value) => typeof value === "boolean" };
const texts: FieldType<readonly string[]> = {
  what: "a list of texts",
  is: (value): value is readonly string[] => Array.isArray(value) && value.every(text.is),
};
const mapping: FieldType<object> = {
  what: "a mapping",
  is: (value): value is object => typeof value === "object" && value !== null && !Array.isArray(value),
};
const extra: FieldType<{ readonly [key: string]: readonly string[] }> = {
  what: "a mapping to lists of texts",
  is: (value): value is { readonly [key: string]: readonly string[] } =>
    mapping.is(value) && Object.values(value).every(texts.is),
};
type Extensions = readonly { readonly name: string; readonly extension?: unknown }[];
const extensions: FieldType<Extensions> = { what: "a list", is: Array.isArray };

const FIELDS = {
  cluster: {
    server: text,
    "certificate-authority": text,
    "certificate-authority-data": text,
    "insecure-skip-tls-verify": flag,
    "tls-server-name": text,
    "proxy-url": text,
    // Ignored: requests are never compressed.
    "disable-compression": flag,
    extensions,
  },
  user: {
    token: text,
    tokenFile: text,
    username: text,
    password: text,
    "client-certificate": text,
    "client-certificate-data": text,
    "client-key": text,
    "client-key-data": text,
    as: text,
    "as-uid": text,
    "as-groups": texts,
    "as-user-extra": extra,
    exec: mapping as FieldType<ExecPlugin>,
    "auth-provider": mapping,
    extensions,
  },
  context: { cluster: text, user: text, namespace: text, extensions },
};

/** The types of entries in a kubeconfig. */
type EntryType = keyof typeof FIELDS;

/** An entry of a kubeconfig; https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/ */
type Entry<Type extends EntryType> = {
  readonly [Field in keyof (typeof FIELDS)[Type]]?: (typeof FIELDS)[Type][Field] extends FieldType<infer Value>
    ? Value
    : never;
};

/**
 * Returns an entry of a kubeconfig without empty fields. Throws if a field is not supported, because ignoring it could result in another identity.
 */
function checkFields<Type extends EntryType>(type: Type, entry: unknown, where: string): Entry<Type> {
  if (!mapping.is(entry)) throw new Error(`${where} is not a mapping`);
  const stated = Object.entries(entry).filter(([, value]) => value !== null && value !== "");
  const fields: { readonly [field: string]: FieldType<unknown> } = FIELDS[type];
  for (const [field, value] of stated) {
    const fieldType = fields[field];
    if (fieldType === undefined) throw new Error(`${where}: the field ${field} is not supported; remove it`);
    if (!fieldType.is(value)) throw new Error(`${where}: ${field} has to be ${fieldType.what}`);
  }
  return Object.fromEntries(stated) as Entry<Type>;
}

/** A credential plugin of a kubeconfig user: a command that prints credentials. */
interface ExecPlugin {
  readonly apiVersion?: string;
  readonly command?: string;
  readonly args?: readonly string[] | null;
  readonly env?: readonly { readonly name: string; readonly value: string }[] | null;
  readonly installHint?: string;
  readonly provideClusterInfo?: boolean;
  readonly interactiveMode?: string;
}

interface ExecPluginContext {
  /** The folder of the kubeconfig. A command with a slash is relative to it. */
  readonly folder: string;
  readonly origin: string;
  /** The cluster information that is passed to the plugin if it requests it (`provideClusterInfo`). */
  readonly cluster: object;
  readonly logger?: Logger | undefined;
}

/** The output of a plugin; https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins */
interface ExecCredential {
  readonly status?: {
    readonly [field in "token" | "clientCertificateData" | "clientKeyData" | "expirationTimestamp"]?: string;
  };
}

/** Creates credentials from a credential plugin. It runs again when the credentials expire or the server rejects them. */
function createExecCredentials(plugin: ExecPlugin, context: ExecPluginContext): Connection["credentials"] {
  const { command = "", interactiveMode } = plugin;
  const what = `the authentication plugin of ${context.origin}`;
  if (command === "") throw new Error(`${what} has no command; set exec.command`);
  if (interactiveMode === "Always")
    throw new Error(
      `${what}, ${command}, is interactive (interactiveMode: Always), and an operator has no terminal; use a non-interactive plugin or a token`,
    );
  const { logger } = context;
  return createRenewedCredentials({
    what,
    everyMs: Infinity,
    read: (signal) => runPlugin(plugin, context, signal),
    logger,
  });
}

async function runPlugin(
  plugin: ExecPlugin,
  context: ExecPluginContext,
  signal: AbortSignal,
): Promise<ReadCredentials> {
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
    // The message of the error contains the output of the plugin.
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
