import { readFileSync } from "node:fs";
import { type JsonObject, arrayAt, isObject, objectAt, stringAt } from "../json.js";
import { packageFile } from "../package-file.js";
import { builtinSchemas, schemaNameOf } from "./schemas.js";
import { type RestStrategy, customStrategy } from "./rest-strategy.js";
import { compareVersions } from "./versions.js";

/** A resource type in one version, as published by discovery and used to route requests. */
export interface ServedType {
  /** "" for the core group. */
  group: string;
  version: string;
  kind: string;
  listKind: string;
  plural: string;
  singular: string;
  shortNames: string[];
  categories: string[];
  namespaced: boolean;
  verbs: string[];
  subresources: Subresource[];
  /** The name of the built-in schema; undefined for custom resources. */
  schemaName?: string;
  /** The definition of a custom resource; undefined for built-in types. */
  custom?: CustomOrigin;
  strategy: RestStrategy;
}

/** A built-in type as published by discovery. */
export type DiscoveredType = Omit<ServedType, "strategy">;

/** A subresource. `group` and `version` belong to `kind`; they are "" for a built-in type whose subresource has the kind of the type itself. */
export interface Subresource {
  name: "status" | "scale" | "finalize" | (string & {});
  kind: string;
  group: string;
  version: string;
  verbs: string[];
}

/** The CustomResourceDefinition of a type and its entry in `spec.versions`. */
export interface CustomOrigin {
  crd: JsonObject;
  version: JsonObject;
  schema: JsonObject;
  /** Whether this is the storage version. */
  storage: boolean;
}

interface DiscoveredGroup {
  group: string;
  version: string;
  resources: {
    resource: string;
    kind: string;
    scope: string;
    singular: string;
    shortNames?: string[];
    categories?: string[];
    verbs: string[];
    subresources?: { name: string; kind: string; group?: string; version: string; verbs: string[] }[];
  }[];
}

const DISCOVERY_FILE = packageFile("data/kubernetes-1.36-discovery.json");
const CUSTOM_VERBS = ["delete", "deletecollection", "get", "list", "patch", "create", "update", "watch"];
const SUBRESOURCE_VERBS = ["get", "patch", "update"];

let memoisedTypes: DiscoveredType[] | undefined;

/** Returns all built-in types, in the order of discovery. */
export function discoveredTypes(): DiscoveredType[] {
  memoisedTypes ??= (JSON.parse(readFileSync(DISCOVERY_FILE, "utf8")) as DiscoveredGroup[]).flatMap(typesOfGroup);
  return memoisedTypes;
}

function typesOfGroup({ group, version, resources }: DiscoveredGroup): DiscoveredType[] {
  return resources.map((resource) => {
    const { kind, resource: plural, subresources = [] } = resource;
    const schemaName = schemaNameOf({ group, version, kind });
    return {
      group,
      version,
      kind,
      listKind: `${kind}List`,
      plural,
      singular: resource.singular,
      shortNames: resource.shortNames ?? [],
      categories: resource.categories ?? [],
      namespaced: resource.scope === "Namespaced",
      verbs: resource.verbs,
      subresources: subresources.map((subresource) => ({ group: "", ...subresource })),
      ...(schemaName === undefined ? {} : { schemaName }),
    };
  });
}

/** Returns the types that a CustomResourceDefinition serves, in order of version priority. */
export function servedTypesOf(crd: JsonObject): ServedType[] {
  const versions = (arrayAt(objectAt(crd, "spec"), "versions") ?? []).filter(isObject);
  return versions
    .filter((version) => version["served"] === true)
    .map((version) => customType(crd, version))
    .sort((a, b) => compareVersions(a.version, b.version));
}

function customType(crd: JsonObject, version: JsonObject): ServedType {
  const spec = objectAt(crd, "spec") ?? {};
  const names = objectAt(spec, "names") ?? {};
  const kind = stringAt(names, "kind") ?? "";
  const group = stringAt(spec, "group") ?? "";
  const versionName = stringAt(version, "name") ?? "";
  const declared = objectAt(version, "subresources");
  const status: Subresource = { name: "status", kind, group, version: versionName, verbs: SUBRESOURCE_VERBS };
  const hasStatus = objectAt(declared, "status") !== undefined;
  return {
    group,
    version: versionName,
    kind,
    listKind: stringAt(names, "listKind") ?? `${kind}List`,
    plural: stringAt(names, "plural") ?? "",
    singular: stringAt(names, "singular") ?? kind.toLowerCase(),
    shortNames: acceptedOf(crd, "shortNames"),
    categories: acceptedOf(crd, "categories"),
    namespaced: spec["scope"] !== "Cluster",
    verbs: CUSTOM_VERBS,
    subresources: [...(hasStatus ? [status] : []), ...(objectAt(declared, "scale") === undefined ? [] : [SCALE])],
    custom: {
      crd,
      version,
      schema: objectAt(objectAt(version, "schema"), "openAPIV3Schema") ?? {},
      storage: version["storage"] === true,
    },
    strategy: customStrategy({ hasStatus }),
  };
}

const SCALE: Subresource = {
  name: "scale",
  kind: "Scale",
  group: "autoscaling",
  version: "v1",
  verbs: SUBRESOURCE_VERBS,
};

// The accepted names exclude short names that conflict with another type.
function acceptedOf(crd: JsonObject, list: "shortNames" | "categories"): string[] {
  const accepted = objectAt(objectAt(crd, "status"), "acceptedNames");
  const names = accepted ?? objectAt(objectAt(crd, "spec"), "names");
  return (arrayAt(names, list) ?? []).filter((name) => typeof name === "string");
}

/** Reports whether the schema of the type is among the built-in ones. */
export function hasBuiltinSchema(type: ServedType): type is ServedType & { schemaName: string } {
  return type.schemaName !== undefined && type.schemaName in builtinSchemas();
}
