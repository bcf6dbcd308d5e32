import type { ExecPlugin } from "./exec-plugin.js";

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
    // Requests are never compressed.
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

/** The parts of a kubeconfig: where a cluster is, who to be, and which of these belong together. */
export type EntryType = keyof typeof FIELDS;

/** An entry of a kubeconfig; https://kubernetes.io/docs/reference/config-api/kubeconfig.v1/ */
export type Entry<Type extends EntryType> = {
  readonly [Field in keyof (typeof FIELDS)[Type]]?: (typeof FIELDS)[Type][Field] extends FieldType<infer Value>
    ? Value
    : never;
};

/** Returns an entry of a kubeconfig without empty fields; throws if a field is not supported: ignored, it could mean another identity. */
export function checkFields<Type extends EntryType>(type: Type, entry: unknown, where: string): Entry<Type> {
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
