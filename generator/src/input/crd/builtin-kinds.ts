import { readFile } from "node:fs/promises";
import { packageFile } from "../../package-file.js";

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
  /** What its objects can be selected by besides their name and namespace. */
  readonly selectableFields: readonly string[];
  /** The file of the project that describes it. Absent for a kind that was recorded, whose class a package has. */
  readonly file?: string;
  readonly schema: { readonly [keyword: string]: unknown };
}

/** The kinds of a Kubernetes API server, and the definitions that their schemas refer to. */
export interface BuiltinKinds {
  readonly kinds: readonly BuiltinKind[];
  readonly definitions: ReadonlyMap<string, { readonly [keyword: string]: unknown }>;
}

/** Returns kinds with further ones; a kind that is there already stays as it is. */
export function withKinds({ kinds, definitions }: BuiltinKinds, further: readonly BuiltinKind[]): BuiltinKinds {
  if (further.length === 0) return { kinds, definitions };
  const known = new Set(kinds.map(keyOf));
  return { kinds: [...kinds, ...further.filter((kind) => !known.has(keyOf(kind)))], definitions };
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

/** Reads the kinds that were recorded from a Kubernetes 1.36 API server, once. */
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
    for (const gvk of (schema["x-kubernetes-group-version-kind"] ?? []) as Gvk[]) byKind.set(keyOf(gvk), schema);
  const kinds = (discovery as DiscoveryGroup[]).flatMap(({ group, version, resources }) =>
    resources.flatMap(({ resource, kind, singular, scope, verbs, subresources }): BuiltinKind[] => {
      const schema = byKind.get(keyOf({ group, version, kind }));
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

function keyOf({ group, version, kind }: Gvk): string {
  return `${group}/${version}/${kind}`;
}

async function readData(name: string): Promise<unknown> {
  return JSON.parse(await readFile(packageFile(`data/kubernetes-1.36-${name}.json`), "utf8"));
}
