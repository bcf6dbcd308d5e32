import type { BuiltinKind, BuiltinKinds } from "../../input/crd/builtin-kinds.js";
import type { Crd } from "../../input/crd/crd.js";
import type { UntypedKindSpec } from "../../input/workflow-spec.js";
import { untypedResource } from "../dependent-model.js";
import type { ResourceModel } from "../project-model.js";

/** A kind as a spec names it: `apps/v1/Deployment`, or `v1/ConfigMap` for the core group. */
export interface KindName {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** All kinds that a project can use. */
export interface ResourceCatalog {
  /** Every version of every CRD of the project, and the kinds that it describes without a CRD. */
  readonly custom: readonly ResourceModel[];
  /** The files in which the CRDs are. */
  readonly crdFiles: readonly string[];
  /** Every name that `find` knows. */
  readonly names: readonly string[];
  find(name: KindName): ResourceModel | undefined;
  /** Returns the kind that a spec describes by its name alone. */
  untyped(spec: UntypedKindSpec): ResourceModel;
  /** Returns what the API server can do with a built-in kind; nothing for other kinds. */
  verbsOf(resource: ResourceModel): readonly string[] | undefined;
}

/** Builds the catalog of a project; a kind that is found twice is the same object. */
export function buildCatalog(crds: readonly Crd[], builtin: BuiltinKinds): ResourceCatalog {
  const described = builtin.kinds.filter(({ file }) => file !== undefined);
  const describedResources = described.map((kind) => resourceOfBuiltin(kind, builtin.definitions));
  const custom = [...crds.flatMap(resourcesOfCrd), ...describedResources];
  const known = new Map(custom.map((resource) => [formatKind(resource), resource]));
  const builtinByName = new Map(builtin.kinds.map((kind) => [formatKind(kind), kind]));
  const verbs = new Map(describedResources.map((resource, index) => [resource, described[index]?.verbs ?? []]));
  const untyped = new Map<string, ResourceModel>();
  return {
    custom,
    crdFiles: [...new Set(crds.map(({ file }) => file))].sort(),
    names: [...new Set([...known.keys(), ...builtinByName.keys()])],
    find(name) {
      const text = formatKind(name);
      const found = known.get(text);
      if (found !== undefined) return found;
      const kind = builtinByName.get(text);
      if (kind === undefined) return undefined;
      const resource = resourceOfBuiltin(kind, builtin.definitions);
      known.set(text, resource);
      verbs.set(resource, kind.verbs);
      return resource;
    },
    untyped(spec) {
      const text = [spec.apiVersion, spec.kind, spec.plural, spec.scope].join("/");
      const found = untyped.get(text) ?? untypedResource(spec);
      untyped.set(text, found);
      return found;
    },
    verbsOf: (resource) => verbs.get(resource),
  };
}

/** Formats a kind as specs name it. */
export function formatKind({ group, version, kind }: KindName): string {
  return [...(group === "" ? [] : [group]), version, kind].join("/");
}

/** Returns the parts of a kind's name, which the schema of specs has checked. */
export function parseKind(text: string): KindName {
  const [kind = "", version = "", group = ""] = text.split("/").reverse();
  return { group, version, kind };
}

function resourcesOfCrd(crd: Crd): ResourceModel[] {
  const { group, kind, plural, singular, listKind, scope, file, digest } = crd;
  const definitions: ResourceModel["definitions"] = new Map();
  return crd.versions.map((crdVersion) => {
    const { name, isServed, isStorage, hasStatusSubresource, scale, selectableFields, deprecationWarning } = crdVersion;
    return Object.freeze({
      ...{ group, version: name, kind, plural, singular, listKind, scope },
      ...{ hasStatusSubresource, isCustom: true, isStorage, isServed },
      ...(scale === undefined ? {} : { scale }),
      selectableFields: selectorFieldsOf(selectableFields, scope === "Namespaced"),
      ...(deprecationWarning === undefined ? {} : { deprecationWarning }),
      ...{ definitions, crdFile: file },
      ...(digest === undefined ? {} : { digest }),
      // Nobody looks into the schema of a definition that is as it was.
      get schema() {
        return crdVersion.schema;
      },
      get crd() {
        return crd.document;
      },
    });
  });
}

function resourceOfBuiltin(builtin: BuiltinKind, definitions: ResourceModel["definitions"]): ResourceModel {
  const { group, version, kind, plural, singular, scope, hasStatusSubresource, selectableFields, schema } = builtin;
  // The server takes a namespace also for kinds that have none, unless it lists their fields one by one.
  const hasNamespace = scope === "Namespaced" || selectableFields.length === 0;
  return Object.freeze({
    ...{ group, version, kind, plural, singular, listKind: `${kind}List`, scope, hasStatusSubresource },
    ...{ isCustom: false, isStorage: true, isServed: true, schema, definitions },
    ...(builtin.file === undefined ? {} : { isDescribed: true }),
    selectableFields: selectorFieldsOf(selectableFields, hasNamespace),
  });
}

function selectorFieldsOf(own: readonly string[], hasNamespace: boolean): readonly string[] {
  return Object.freeze(["metadata.name", ...(hasNamespace ? ["metadata.namespace"] : []), ...own]);
}
