import { readFile } from "node:fs/promises";
import { dirname, isAbsolute, join } from "node:path";
import { load } from "js-yaml";
import { serverOf, type Connection, type Credentials } from "./connection.js";
import { createPluginConnection } from "./kubeconfig-plugin.js";
import { createTokenFileCredentials } from "./token-file.js";

// https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/
interface Kubeconfig {
  "current-context"?: string;
  clusters?: { name: string; cluster?: ClusterEntry }[];
  users?: { name: string; user?: UserEntry }[];
  contexts?: { name: string; context?: { cluster?: string; user?: string; namespace?: string } }[];
}

interface ClusterEntry {
  server?: string;
  "certificate-authority"?: string;
  "certificate-authority-data"?: string;
  "insecure-skip-tls-verify"?: boolean;
  "tls-server-name"?: string;
  "proxy-url"?: string;
}

interface UserEntry {
  token?: string;
  tokenFile?: string;
  username?: string;
  password?: string;
  "client-certificate"?: string;
  "client-certificate-data"?: string;
  "client-key"?: string;
  "client-key-data"?: string;
}

// A user entry with nothing else needs no plugin; the rest (exec, OIDC, impersonation) is left to client-node, which is only then loaded.
const PLAIN_USER_FIELDS: ReadonlySet<string> = new Set([
  "token",
  "tokenFile",
  "username",
  "password",
  "client-certificate",
  "client-certificate-data",
  "client-key",
  "client-key-data",
]);

/** Reads the connection of the current context, or of `context`, from a kubeconfig file. */
export async function readKubeconfig(file: string, context?: string): Promise<Connection> {
  const config = parseKubeconfig(file, await readText(file, "kubeconfig"));
  const contextName = context ?? config["current-context"];
  if (!contextName)
    throw new Error(`kubeconfig ${file} has no current-context; choose one with kubectl config use-context`);
  const contextEntry = entryOf(config.contexts, contextName)?.context;
  if (contextEntry === undefined) throw new Error(`kubeconfig ${file} has no context "${contextName}"`);
  const cluster = entryOf(config.clusters, contextEntry.cluster)?.cluster;
  if (cluster?.server === undefined)
    throw new Error(
      `kubeconfig ${file}: context "${contextName}" names cluster "${contextEntry.cluster}", which has no server`,
    );
  if (!URL.canParse(cluster.server))
    throw new Error(
      `kubeconfig ${file}: the server of cluster "${contextEntry.cluster}", "${cluster.server}", is no URL`,
    );
  const user: UserEntry = entryOf(config.users, contextEntry.user)?.user ?? {};
  const base = dirname(file);
  const ca = await readMaterial(cluster["certificate-authority-data"], cluster["certificate-authority"], base);
  const namespace = contextEntry.namespace;
  const connection: Omit<Connection, "credentials"> = {
    ...serverOf(cluster.server),
    origin: `kubeconfig ${file}, context "${contextName}"`,
    ...(namespace ? { namespace } : {}),
    ...(ca === undefined ? {} : { ca }),
    ...(cluster["tls-server-name"] ? { serverName: cluster["tls-server-name"] } : {}),
    ...(cluster["insecure-skip-tls-verify"] === true ? { skipsTlsVerify: true } : {}),
  };
  if (Object.keys(user).every((field) => PLAIN_USER_FIELDS.has(field)))
    return { ...connection, credentials: await plainCredentials(user, base) };
  return createPluginConnection({ file, context: contextName, connection });
}

function parseKubeconfig(file: string, text: string): Kubeconfig {
  try {
    const config: unknown = load(text);
    if (typeof config === "object" && config !== null) return config as Kubeconfig;
  } catch (error) {
    throw new Error(`kubeconfig ${file} is not valid YAML`, { cause: error });
  }
  throw new Error(`kubeconfig ${file} is empty, or not a mapping`);
}

async function plainCredentials(user: UserEntry, base: string): Promise<Connection["credentials"]> {
  const cert = await readMaterial(user["client-certificate-data"], user["client-certificate"], base);
  const key = await readMaterial(user["client-key-data"], user["client-key"], base);
  const certificate: Credentials = { ...(cert === undefined ? {} : { cert }), ...(key === undefined ? {} : { key }) };
  // As in client-go, a token file takes precedence over a token.
  if (user.tokenFile !== undefined) {
    const readToken = createTokenFileCredentials(absoluteOf(user.tokenFile, base));
    return async (options) => ({ ...certificate, ...(await readToken(options)) });
  }
  if (user.token !== undefined) {
    const authorization = `Bearer ${user.token.trim()}`;
    return () => ({ ...certificate, authorization });
  }
  if (user.username !== undefined) {
    const authorization = `Basic ${Buffer.from(`${user.username}:${user.password ?? ""}`).toString("base64")}`;
    return () => ({ ...certificate, authorization });
  }
  return () => certificate;
}

async function readMaterial(
  data: string | undefined,
  file: string | undefined,
  base: string,
): Promise<Buffer | undefined> {
  if (data !== undefined) return Buffer.from(data, "base64");
  if (file === undefined) return undefined;
  return Buffer.from(await readText(absoluteOf(file, base), "kubeconfig's"));
}

async function readText(file: string, what: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new Error(`cannot read the ${what} file ${file}`, { cause: error });
  }
}

// Relative paths in a kubeconfig are relative to it.
function absoluteOf(file: string, base: string): string {
  return isAbsolute(file) ? file : join(base, file);
}

function entryOf<Entry extends { name: string }>(
  entries: Entry[] | undefined,
  name: string | undefined,
): Entry | undefined {
  return entries?.find((entry) => entry.name === name);
}
