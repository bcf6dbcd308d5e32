import { readFile } from "node:fs/promises";
import { exactJson, parseExactJson } from "@gen-operator/schema";
import { packageFile } from "../package-file.js";
import { isRecord } from "./yaml/values.js";

/** A kind of a Kubernetes API server. */
export interface BuiltinKind {
  /** Empty for the core group. */
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly scope: "Namespaced" | "Cluster";
  readonly hasStatusSubresource: boolean;
  readonly verbs: readonly string[];
  /** Fields for field selectors in addition to the name and namespace. */
  readonly selectableFields: readonly string[];
  /** File of the project that describes the kind. Absent for a recorded kind, whose class is in a package. */
  readonly file?: string;
  readonly schema: { readonly [keyword: string]: unknown };
}

/** The kinds of a Kubernetes API server, and the definitions that their schemas reference. */
export interface BuiltinKinds {
  readonly kinds: readonly BuiltinKind[];
  readonly definitions: ReadonlyMap<string, { readonly [keyword: string]: unknown }>;
}

/** Adds kinds. Existing kinds take precedence. */
export function withKinds({ kinds, definitions }: BuiltinKinds, further: readonly BuiltinKind[]): BuiltinKinds {
  if (further.length === 0) return { kinds, definitions };
  const known = new Set(kinds.map(kindKeyOf));
  return { kinds: [...kinds, ...further.filter((kind) => !known.has(kindKeyOf(kind)))], definitions };
}

interface DiscoveryGroup {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly {
    readonly resource: string;
    readonly kind: string;
    readonly singular: string;
    readonly scope: BuiltinKind["scope"];
    readonly verbs: readonly string[];
    readonly subresources?: readonly { readonly name: string }[];
  }[];
}

interface Gvk {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

let read: Promise<BuiltinKinds> | undefined;

/** Reads the kinds recorded from a Kubernetes 1.36 API server. The result is cached. */
export function readBuiltinKinds(): Promise<BuiltinKinds> {
  return (read ??= readRecorded());
}

async function readRecorded(): Promise<BuiltinKinds> {
  const [discovery, schemas, fields] = await Promise.all([
    readData("discovery"),
    readData("schemas"),
    readData("selectable-fields"),
  ]);
  const selectable = fields as { readonly [name: string]: readonly string[] };
  const definitions = new Map(Object.entries(schemas as { [name: string]: BuiltinKind["schema"] }));
  const byKind = new Map<string, BuiltinKind["schema"]>();
  for (const schema of definitions.values())
    for (const gvk of (schema["x-kubernetes-group-version-kind"] ?? []) as Gvk[]) byKind.set(kindKeyOf(gvk), schema);
  const kinds = (discovery as DiscoveryGroup[]).flatMap(({ group, version, resources }) =>
    resources.flatMap(({ resource, kind, singular, scope, verbs, subresources }): BuiltinKind[] => {
      const schema = byKind.get(kindKeyOf({ group, version, kind }));
      if (schema === undefined) return [];
      const hasStatusSubresource = subresources?.some(({ name }) => name === "status") ?? false;
      const selectableFields = selectable[group === "" ? resource : `${resource}.${group}`] ?? [];
      return [
        {
          ...{ group, version, kind, plural: resource, singular, scope },
          ...{ hasStatusSubresource, verbs, selectableFields, schema },
        },
      ];
    }),
  );
  return { kinds, definitions };
}

function kindKeyOf({ group, version, kind }: Gvk): string {
  return `${group}/${version}/${kind}`;
}

async function readData(name: string): Promise<unknown> {
  return JSON.parse(await readFile(packageFile(`data/kubernetes-1.36-${name}.json`), "utf8"));
}

// Reads kinds without a CRD from OpenAPI v3, as printed by `kubectl get --raw /openapi/v3/apis/GROUP/VERSION`.

/** A part of an OpenAPI document. */
type OpenApiPart = { readonly [field: string]: unknown };

const GVK = "x-kubernetes-group-version-kind";
const REFERENCE = "#/components/schemas/";
const COLLECTION = /^\/(?:api|apis\/([^/]+))\/([^/]+)\/(namespaces\/\{namespace\}\/)?([a-z0-9]+)$/;

/** Verbs by x-kubernetes-action. */
const VERBS: { readonly [action: string]: string } = {
  list: "list",
  post: "create",
  get: "get",
  put: "update",
  patch: "patch",
  delete: "delete",
  deletecollection: "deletecollection",
  watchlist: "watch",
};

/** Reads the kinds of an OpenAPI document; undefined if the text is not an OpenAPI document. */
export function readOpenApiKinds(file: string, text: string): BuiltinKind[] | undefined {
  const document = parseOpenApi(text);
  if (document === undefined) return undefined;
  const paths = recordAt(document, "paths");
  const definitions = new Map(
    Object.entries(recordAt(recordAt(document, "components"), "schemas")).filter(
      (entry): entry is [string, OpenApiPart] => isRecord(entry[1]),
    ),
  );
  return Object.keys(paths).flatMap((path): BuiltinKind[] => {
    const [, group = "", version = "", namespaces, plural = ""] = COLLECTION.exec(path) ?? [];
    const kind = kindOf(recordAt(paths, path));
    if (plural === "" || kind === undefined) return [];
    // A namespaced kind also has a collection path for all namespaces.
    const isNamespaced = namespaces !== undefined;
    if (!isNamespaced && Object.keys(paths).some((other) => isCollectionIn(other, { group, version, plural })))
      return [];
    const schema = [...definitions.values()].find((each) => describes(each, { group, version, kind }));
    if (schema === undefined) return [];
    return [
      {
        ...{ group, version, kind, plural, singular: kind.toLowerCase(), file },
        schema: inline(schema, definitions),
        scope: isNamespaced ? "Namespaced" : "Cluster",
        hasStatusSubresource: paths[`${path}/{name}/status`] !== undefined,
        verbs: verbsIn(paths, path),
        selectableFields: [],
      },
    ];
  });
}

const QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity";
const INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString";

/**
 * Inlines the references of a schema, as in CRDs. A recursive reference becomes an object with unknown fields.
 *
 * OpenAPI 3.0 allows no siblings of `$ref`, so Kubernetes wraps it: `{ default: {}, allOf: [{ $ref }] }`. Keywords next to the reference take
 * precedence.
 */
function inline(
  raw: OpenApiPart,
  definitions: ReadonlyMap<string, OpenApiPart>,
  open: readonly string[] = [],
): OpenApiPart {
  const { $ref, allOf, ...beside } = raw;
  const only: unknown = Array.isArray(allOf) && allOf.length === 1 ? allOf[0] : undefined;
  const reference = $ref ?? (isRecord(only) ? only["$ref"] : undefined);
  if (typeof reference !== "string") return withInlineMembers(raw, definitions, open);
  const name = reference.slice(REFERENCE.length);
  if (name === QUANTITY) return { ...beside, format: "quantity" };
  if (name === INT_OR_STRING) return { ...beside, "x-kubernetes-int-or-string": true };
  const target = definitions.get(name);
  if (target === undefined || open.includes(name))
    return { ...beside, type: "object", "x-kubernetes-preserve-unknown-fields": true };
  return { ...inline(target, definitions, [...open, name]), ...beside };
}

function withInlineMembers(
  schema: OpenApiPart,
  definitions: ReadonlyMap<string, OpenApiPart>,
  open: readonly string[],
): OpenApiPart {
  const members = ["items", "additionalProperties"].flatMap((field) =>
    isRecord(schema[field]) ? [[field, inline(schema[field], definitions, open)]] : [],
  );
  if (!isRecord(schema["properties"])) return { ...schema, ...Object.fromEntries(members) };
  const properties = Object.entries(schema["properties"]).map(([name, each]) => [
    name,
    isRecord(each) ? inline(each, definitions, open) : each,
  ]);
  return { ...schema, ...Object.fromEntries(members), properties: Object.fromEntries(properties) };
}

/** A kind in an OpenAPI document. */
export interface OpenApiKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  readonly plural: string;
  readonly isNamespaced: boolean;
  readonly hasStatusSubresource: boolean;
  readonly verbs: readonly string[];
}

/** Extracts one kind, with the definitions that it references, from an OpenAPI document. Undefined if the document does not contain its schema. */
export function extractKind(text: string, kind: OpenApiKind): string | undefined {
  const schemas = recordAt(recordAt(parseOpenApi(text, parseExactJson) ?? {}, "components"), "schemas");
  const root = Object.keys(schemas).find((name) => describes(recordAt(schemas, name), kind));
  if (root === undefined) return undefined;
  const kept = new Set([root]);
  // Iterating over a set includes the elements that are added meanwhile.
  for (const name of kept) for (const other of referencesIn(schemas[name])) if (other in schemas) kept.add(other);
  const document = {
    openapi: "3.0.0",
    info: { title: `${kind.group}/${kind.version} ${kind.kind}`, version: kind.version },
    paths: pathsOf(kind),
    components: { schemas: Object.fromEntries([...kept].sort().map((name) => [name, schemas[name]])) },
  };
  return `${exactJson(document, 2)}\n`;
}

function pathsOf({ group, version, kind, plural, isNamespaced, hasStatusSubresource, verbs }: OpenApiKind): object {
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  const place = `${isNamespaced ? "namespaces/{namespace}/" : ""}${plural}`;
  const operations = (actions: { readonly [method: string]: string }) =>
    Object.fromEntries(
      Object.entries(actions)
        .filter(([, action]) => verbs.includes(VERBS[action] ?? ""))
        .map(([method, action]) => [method, { "x-kubernetes-action": action, [GVK]: { group, version, kind } }]),
    );
  return {
    [`${root}/${place}`]: operations({ get: "list", post: "post", delete: "deletecollection" }),
    [`${root}/${place}/{name}`]: operations({ get: "get", put: "put", patch: "patch", delete: "delete" }),
    ...(hasStatusSubresource ? { [`${root}/${place}/{name}/status`]: {} } : {}),
    ...(verbs.includes("watch") ? { [`${root}/watch/${place}`]: operations({ get: "watchlist" }) } : {}),
  };
}

function parseOpenApi(text: string, parse: (text: string) => unknown = JSON.parse): OpenApiPart | undefined {
  // Fast path: most files are CRDs, and some are large.
  if (!text.trimStart().startsWith("{") || !text.includes('"openapi"')) return undefined;
  try {
    const document = parse(text);
    return isRecord(document) && typeof document["openapi"] === "string" ? document : undefined;
  } catch {
    return undefined;
  }
}

function isCollectionIn(path: string, wanted: Pick<OpenApiKind, "group" | "version" | "plural">): boolean {
  const [, group = "", version, namespaces, plural] = COLLECTION.exec(path) ?? [];
  const isSame = group === wanted.group && version === wanted.version && plural === wanted.plural;
  return isSame && namespaces !== undefined;
}

function kindOf(operations: OpenApiPart): string | undefined {
  for (const operation of Object.values(operations)) {
    const kind = isRecord(operation) ? recordAt(operation, GVK)["kind"] : undefined;
    if (typeof kind === "string") return kind;
  }
  return undefined;
}

function verbsIn(paths: OpenApiPart, path: string): string[] {
  const [, root = "", place = ""] = /^(\/(?:api|apis\/[^/]+)\/[^/]+)(\/.*)$/.exec(path) ?? [];
  const operations = [path, `${path}/{name}`, `${root}/watch${place}`].flatMap((each) =>
    Object.values(recordAt(paths, each)),
  );
  const actions = operations.flatMap((each) => (isRecord(each) ? String(each["x-kubernetes-action"]) : []));
  return [...new Set(actions.flatMap((action) => VERBS[action] ?? []))];
}

function describes(
  schema: OpenApiPart,
  { group, version, kind }: Pick<OpenApiKind, "group" | "version" | "kind">,
): boolean {
  const names = schema[GVK];
  return (
    Array.isArray(names) &&
    names.some(
      (each: unknown) =>
        isRecord(each) && each["group"] === group && each["version"] === version && each["kind"] === kind,
    )
  );
}

function referencesIn(value: unknown): string[] {
  if (Array.isArray(value)) return value.flatMap(referencesIn);
  if (!isRecord(value)) return [];
  const { $ref: reference } = value;
  const own =
    typeof reference === "string" && reference.startsWith(REFERENCE) ? [reference.slice(REFERENCE.length)] : [];
  return [...own, ...Object.values(value).flatMap(referencesIn)];
}

function recordAt(part: OpenApiPart, field: string): OpenApiPart {
  const value = Object.hasOwn(part, field) ? part[field] : undefined;
  return isRecord(value) ? value : {};
}
