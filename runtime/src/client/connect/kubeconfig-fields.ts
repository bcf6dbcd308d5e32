import type { ExecPlugin } from "./exec-plugin.js";

/** A kubeconfig file; https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/ */
export interface Kubeconfig {
  readonly "current-context"?: string;
  readonly clusters?: readonly { readonly name: string; readonly cluster?: ClusterEntry }[] | null;
  readonly users?: readonly { readonly name: string; readonly user?: UserEntry }[] | null;
  readonly contexts?: readonly { readonly name: string; readonly context?: ContextEntry }[] | null;
}

/** How a kubeconfig says where a cluster is. */
export interface ClusterEntry {
  readonly server?: string;
  readonly "certificate-authority"?: string;
  readonly "certificate-authority-data"?: string;
  readonly "insecure-skip-tls-verify"?: boolean;
  readonly "tls-server-name"?: string;
  readonly "proxy-url"?: string;
  readonly extensions?: readonly { readonly name: string; readonly extension?: unknown }[];
}

/** How a kubeconfig says who to be. */
export interface UserEntry {
  readonly token?: string;
  readonly tokenFile?: string;
  readonly username?: string;
  readonly password?: string;
  readonly "client-certificate"?: string;
  readonly "client-certificate-data"?: string;
  readonly "client-key"?: string;
  readonly "client-key-data"?: string;
  readonly as?: string;
  readonly "as-uid"?: string;
  readonly "as-groups"?: readonly string[];
  readonly "as-user-extra"?: { readonly [key: string]: readonly string[] };
  readonly exec?: ExecPlugin;
  readonly "auth-provider"?: object;
}

/** Which cluster and which user of a kubeconfig belong together. */
export interface ContextEntry {
  readonly cluster?: string;
  readonly user?: string;
  readonly namespace?: string;
}

type FieldType =
  "a text" | "true or false" | "a list of texts" | "a list" | "a mapping" | "a mapping to lists of texts";

const FIELDS: { readonly [type in "cluster" | "user" | "context"]: { readonly [field: string]: FieldType } } = {
  cluster: {
    server: "a text",
    "certificate-authority": "a text",
    "certificate-authority-data": "a text",
    "insecure-skip-tls-verify": "true or false",
    "tls-server-name": "a text",
    "proxy-url": "a text",
    // Requests are never compressed.
    "disable-compression": "true or false",
    extensions: "a list",
  },
  user: {
    token: "a text",
    tokenFile: "a text",
    username: "a text",
    password: "a text",
    "client-certificate": "a text",
    "client-certificate-data": "a text",
    "client-key": "a text",
    "client-key-data": "a text",
    as: "a text",
    "as-uid": "a text",
    "as-groups": "a list of texts",
    "as-user-extra": "a mapping to lists of texts",
    exec: "a mapping",
    "auth-provider": "a mapping",
    extensions: "a list",
  },
  context: { cluster: "a text", user: "a text", namespace: "a text", extensions: "a list" },
};

/**
 * Returns an entry of a kubeconfig without the fields that are empty.
 *
 * Throws an error that begins with `where` if it has a field that is not supported: ignored, it could mean another identity.
 */
export function checkFields<Entry extends object>(type: keyof typeof FIELDS, entry: Entry, where: string): Entry {
  const stated = Object.entries(entry).filter(([, value]) => value !== null && value !== "");
  for (const [field, value] of stated) {
    const fieldType = FIELDS[type][field];
    if (fieldType === undefined) throw new Error(`${where}: the field ${field} is not supported; remove it`);
    if (!isOfType(value, fieldType)) throw new Error(`${where}: ${field} has to be ${fieldType}`);
  }
  return Object.fromEntries(stated) as Entry;
}

function isOfType(value: unknown, type: FieldType): boolean {
  const isMapping = typeof value === "object" && value !== null && !Array.isArray(value);
  switch (type) {
    case "a text":
      return typeof value === "string";
    case "true or false":
      return typeof value === "boolean";
    case "a list":
      return Array.isArray(value);
    case "a list of texts":
      return Array.isArray(value) && value.every((item) => typeof item === "string");
    case "a mapping":
      return isMapping;
    case "a mapping to lists of texts":
      return isMapping && Object.values(value).every((list) => isOfType(list, "a list of texts"));
  }
}
