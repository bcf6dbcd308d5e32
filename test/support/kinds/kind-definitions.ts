// Creates resource definitions as generated code contains them, for tests without a generated project.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { buildRuntimeSchema } from "#generator/emit/resource/runtime-schema.js";
import type { JsonObject } from "#apiserver/json.js";
import type {
  KubernetesObject,
  ObjectMeta,
  ResourceClass,
  ResourceDefinition,
} from "#runtime/base/kubernetes-object.js";
import { createResource, defineResource } from "#runtime/api/define-resource.js";
import { repositoryRoot } from "../repository.js";

type RawSchema = { readonly [keyword: string]: unknown };

interface Discovered {
  group: string;
  version: string;
  resources: { resource: string; kind: string; scope: "Namespaced" | "Cluster"; subresources?: { name: string }[] }[];
}

/** The fields of a CustomResourceDefinition that are used here. */
export interface CrdObject {
  readonly spec: {
    readonly group: string;
    readonly scope: "Namespaced" | "Cluster";
    readonly names: { readonly kind: string; readonly plural: string; readonly [name: string]: unknown };
    readonly versions: readonly {
      readonly name: string;
      readonly schema: { readonly openAPIV3Schema: RawSchema };
      readonly subresources?: { readonly status?: object };
      readonly [member: string]: unknown;
    }[];
  };
}

const read = (name: string): unknown =>
  JSON.parse(readFileSync(join(repositoryRoot, "generator/data", `kubernetes-1.36-${name}.json`), "utf8"));

let discovery: Discovered[] | undefined;
let schemas: { readonly [name: string]: RawSchema } | undefined;

/** Returns the schemas of all built-in types, by full name. */
export function builtinSchemas(): { readonly [name: string]: RawSchema } {
  return (schemas ??= read("schemas") as { readonly [name: string]: RawSchema });
}

/** Returns the full name of the schema of a built-in kind. */
export function schemaNameOf(apiVersion: string, kind: string): string {
  const [version, group = ""] = apiVersion.split("/").reverse();
  const name = Object.entries(builtinSchemas()).find(([, schema]) => {
    const kinds = schema["x-kubernetes-group-version-kind"] as
      { group: string; version: string; kind: string }[] | undefined;
    return kinds?.some((each) => each.group === group && each.version === version && each.kind === kind) === true;
  })?.[0];
  if (name === undefined) throw new Error(`there is no built-in ${apiVersion} ${kind}`);
  return name;
}

/** Returns the resource definition of a built-in kind. */
export function builtinDefinition(apiVersion: string, kind: string): ResourceDefinition {
  const schema = builtinSchemas()[schemaNameOf(apiVersion, kind)]!;
  const { group, version, resource } = discoveredKind(apiVersion, kind);
  const facts = { group, version, kind, plural: resource.resource, scope: resource.scope, isCustom: false };
  const hasStatusSubresource = Object.hasOwn(schema["properties"] as object, "status");
  const definitions = new Map(Object.entries(builtinSchemas()));
  return definitionOf({ ...facts, hasStatusSubresource }, { schema, definitions });
}

/** Returns the names of the subresources of a built-in kind. */
export function builtinSubresources({ apiVersion, kind }: { apiVersion: string; kind: string }): string[] {
  return (discoveredKind(apiVersion, kind).resource.subresources ?? []).map(({ name }) => name);
}

function discoveredKind(apiVersion: string, kind: string) {
  const [version = "", group = ""] = apiVersion.split("/").reverse();
  const discovered = (discovery ??= read("discovery") as Discovered[]).find(
    (each) => each.group === group && each.version === version,
  );
  const resource = discovered?.resources.find((each) => each.kind === kind && !each.resource.includes("/"));
  if (resource === undefined) throw new Error(`${apiVersion} ${kind} is not served`);
  return { group, version, resource };
}

/** Returns the resource definition of the first version of a CRD. */
export function customDefinition({ spec }: CrdObject): ResourceDefinition {
  const { name: version, schema, subresources } = spec.versions[0]!;
  const { group, scope, names } = spec;
  const facts = { group, version, kind: names.kind, plural: names.plural, scope, isCustom: true };
  const hasStatusSubresource = subresources?.status !== undefined;
  return definitionOf({ ...facts, hasStatusSubresource }, { schema: schema.openAPIV3Schema, definitions: new Map() });
}

/** An object with undeclared fields. */
export interface AnyObject extends KubernetesObject {
  [member: string]: unknown;
}

/** The JSON of an object of any kind. */
export type JsonResource = JsonObject & { apiVersion: string; kind: string; metadata: ObjectMeta & JsonObject };

/** Returns a resource class as generated code contains it. */
export function classOf<Resource extends KubernetesObject = AnyObject>(
  definition: ResourceDefinition,
): ResourceClass<Resource, object> {
  const typed = definition as ResourceDefinition<Resource>;
  return { definition: typed, create: (init) => createResource(typed, init) };
}

function definitionOf(
  facts: Omit<ResourceDefinition, "apiVersion" | "schema">,
  { schema, definitions }: { schema: RawSchema; definitions: ReadonlyMap<string, RawSchema> },
): ResourceDefinition {
  const names = { singular: facts.kind.toLowerCase(), listKind: `${facts.kind}List`, selectableFields: [] };
  const model = { ...facts, ...names, isStorage: true, isServed: true, schema, definitions };
  return defineResource({ ...facts, schema: buildRuntimeSchema(model) });
}
