import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseAllDocuments } from "yaml";
import type { RawSchema, ResourceModel } from "#generator/model/project-model.js";
import { repositoryRoot } from "../repository.js";

interface Crd {
  readonly kind: string;
  readonly spec: {
    readonly group: string;
    readonly scope: "Namespaced" | "Cluster";
    readonly names: { kind: string; plural: string; singular?: string; listKind?: string };
    readonly versions: readonly {
      readonly name: string;
      readonly served: boolean;
      readonly storage: boolean;
      readonly subresources?: { readonly status?: object };
      readonly schema?: { readonly openAPIV3Schema?: RawSchema };
    }[];
  };
}

/** Returns a resource for each version of each CRD in a YAML document. */
export function resourcesOfCrds(text: string): ResourceModel[] {
  const documents = parseAllDocuments(text, { uniqueKeys: false }).map((document) => document.toJS() as Crd | null);
  return documents.flatMap((crd) => {
    if (crd?.kind !== "CustomResourceDefinition") return [];
    const { group, scope, names, versions } = crd.spec;
    return versions.map((version) => ({
      group,
      version: version.name,
      kind: names.kind,
      plural: names.plural,
      singular: names.singular ?? names.kind.toLowerCase(),
      listKind: names.listKind ?? `${names.kind}List`,
      scope,
      hasStatusSubresource: version.subresources?.status !== undefined,
      isCustom: true,
      isStorage: version.storage,
      isServed: version.served,
      selectableFields: ["metadata.name"],
      schema: version.schema?.openAPIV3Schema ?? { type: "object", "x-kubernetes-preserve-unknown-fields": true },
      definitions: new Map(),
      crd,
    }));
  });
}

/** Returns a resource of the test kind `Thing` with the schema of its spec. */
export function thingOf(spec: RawSchema, rest: Partial<ResourceModel> = {}): ResourceModel {
  return {
    group: "example.com",
    version: "v1",
    kind: "Thing",
    plural: "things",
    singular: "thing",
    listKind: "ThingList",
    scope: "Namespaced",
    hasStatusSubresource: false,
    isCustom: true,
    isStorage: true,
    isServed: true,
    selectableFields: ["metadata.name"],
    schema: { type: "object", properties: { spec } },
    definitions: new Map(),
    ...rest,
  };
}

interface DiscoveredKind {
  readonly resource: string;
  readonly kind: string;
  readonly scope: "Namespaced" | "Cluster";
  readonly singular: string;
  readonly subresources?: readonly { readonly name: string }[];
}

interface Gvk {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

const dataFolder = join(repositoryRoot, "generator/data");
const readData = (name: string) => JSON.parse(readFileSync(join(dataFolder, name), "utf8")) as unknown;
const definitions = new Map(Object.entries(readData("kubernetes-1.36-schemas.json") as Record<string, RawSchema>));
const discovery = readData("kubernetes-1.36-discovery.json") as readonly {
  readonly group: string;
  readonly version: string;
  readonly resources: readonly DiscoveredKind[];
}[];

/** Returns a built-in kind from the recorded OpenAPI of Kubernetes 1.36. */
export function builtinResource(group: string, version: string, kind: string): ResourceModel {
  const resource = discovery
    .find((entry) => entry.group === group && entry.version === version)
    ?.resources.find((entry) => entry.kind === kind);
  const schema = [...definitions.values()].find((candidate) => {
    const gvks = (candidate["x-kubernetes-group-version-kind"] ?? []) as readonly Gvk[];
    return gvks.some((gvk) => gvk.group === group && gvk.version === version && gvk.kind === kind);
  });
  if (resource === undefined || schema === undefined) throw new Error(`no ${group}/${version} ${kind} in the data`);
  return {
    group,
    version,
    kind,
    plural: resource.resource,
    singular: resource.singular,
    listKind: `${kind}List`,
    scope: resource.scope,
    hasStatusSubresource: resource.subresources?.some(({ name }) => name === "status") ?? false,
    isCustom: false,
    isStorage: true,
    isServed: true,
    selectableFields: ["metadata.name"],
    schema,
    definitions,
  };
}
