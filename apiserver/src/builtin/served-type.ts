import { readFileSync } from "node:fs";
import { type JsonObject, arrayAt, isObject, objectAt, stringAt } from "../json.js";
import { packageFile } from "../package-file.js";
import { builtinSchemas, schemaNameOf } from "./schemas.js";
import { type RestStrategy, customStrategy } from "./rest-strategy.js";
import { compareVersions } from "./versions.js";

/** One resource type in one version, as discovery shows it and requests are routed to it. */
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
  /** The name of the type's schema in the built-in schemas; absent for custom resources. */
  schemaName?: string;
  /** Where a custom resource comes from; absent for built-in types. */
  custom?: CustomOrigin;
  strategy: RestStrategy;
}

/** A built-in type as discovery shows it. */
export type DiscoveredType = Omit<ServedType, "strategy">;

/** A path below an object. Group and version are those of `kind`, both "" on built-in types that mean their own. */
export interface Subresource {
  name: "status" | "scale" | "finalize" | (string & {});
  kind: string;
  group: string;
  version: string;
  verbs: string[];
}

/** The CustomResourceDefinition and the entry of its `spec.versions` that declare a type. */
export interface CustomOrigin {
  crd: JsonObject;
  version: JsonObject;
  schema: JsonObject;
  /** Whether objects are stored in this version. */
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

/** Returns every built-in type as discovery shows it, in its order. */
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

/** Gives the types that a CustomResourceDefinition serves, the preferred version first. */
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

// Short names that another type has taken are missing from the accepted names.
function acceptedOf(crd: JsonObject, list: "shortNames" | "categories"): string[] {
  const accepted = objectAt(objectAt(crd, "status"), "acceptedNames");
  const names = accepted ?? objectAt(objectAt(crd, "spec"), "names");
  return (arrayAt(names, list) ?? []).filter((name) => typeof name === "string");
}

/** True if the type's version has a schema among the built-in ones. */
export function hasBuiltinSchema(type: ServedType): type is ServedType & { schemaName: string } {
  return type.schemaName !== undefined && type.schemaName in builtinSchemas();
}
