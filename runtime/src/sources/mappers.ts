// Mappers from a secondary to the primaries that it concerns (JOSDK Mappers). A mapper must be a pure function of the object, and of the
// primaries that it reads: the primaries that it returned for the old state of an object are reconciled, too.
import { groupOf, keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import type { ResourceReader } from "../base/kubernetes-object.js";
import type { Defined, ResourceDefinition } from "../base/resource-definition.js";
import { PRIMARY_NAME, PRIMARY_NAMESPACE, PRIMARY_TYPE, typeOfPrimary } from "../base/primary-link.js";

/** Returns the keys of the primaries that a secondary concerns; pure. */
export type SecondaryToPrimaryMapper<Secondary extends KubernetesObject = KubernetesObject> = (
  secondary: Secondary,
) => readonly ObjectKey[];

/** The second argument of a mapper: the primaries that the cache knows, by the indexes of the controller. */
export interface MapperContext<Index extends string = string, Primary = KubernetesObject> {
  readonly primaries: Omit<ResourceReader<Primary>, "byIndex" | "list"> & {
    /** Returns the primaries of a namespace, or all of them, in no particular order: a mapper is called for each object. */
    list(options?: { readonly namespace?: string }): readonly Primary[];
    /** Tells whether a primary with this key is known. */
    has(key: ObjectKey): boolean;
    keys(): Iterable<ObjectKey>;
    /** Returns the keys of the primaries for which the index gave `value`. */
    keysByIndex(index: Index, value: string): ReadonlySet<ObjectKey>;
    /** Returns the primaries for which the index gave `value`, sorted by key. */
    byIndex(index: Index, value: string): readonly Primary[];
  };
}

/** The second argument of `primaryToSecondary`. */
export interface PrimaryMapperContext<Secondary = object> {
  /**
   * What is known now of the dependents and the other event sources of the primary, by name, as a reconcile sees it. When something changes that
   * the mapper may have read here, it is called again, whether or not the filters of its source let the change pass.
   */
  readonly secondary: Secondary;
}

/**
 * Returns the keys of the secondaries that a primary refers to, whether they exist or not. Pure, but for what it reads of `secondary`.
 *
 * @example primaryToSecondary: ({ metadata }, { secondary }) => secondary.users.flatMap(({ status }) => `${metadata.namespace}/${status?.secret}`)
 */
export type PrimaryToSecondaryMapper<Primary extends KubernetesObject = KubernetesObject, Secondary = object> = (
  primary: Primary,
  context: PrimaryMapperContext<Secondary>,
) => readonly ObjectKey[];

/** The names of the labels or annotations that point to a primary. */
export interface PrimaryKeys {
  /** The key of the name; an object without it concerns no primary. */
  readonly name: string;
  /** The key of the namespace; an object without it names a cluster-scoped primary. Default: the namespace of the object. */
  readonly namespace?: string;
  /** The key of the kind, written as `Kind.group`; an object that names another kind concerns no primary. */
  readonly type?: string;
}

// The mappers that map an object to primaries of its own namespace alone.
const localMappers = new WeakSet<SecondaryToPrimaryMapper>();

/** Tells whether a mapper is known to map an object to primaries of its own namespace alone. */
export function isLocalMapper(mapper: SecondaryToPrimaryMapper): boolean {
  return localMappers.has(mapper);
}

function local(mapper: SecondaryToPrimaryMapper): SecondaryToPrimaryMapper {
  localMappers.add(mapper);
  return mapper;
}

/** Maps by owner references of the primary's kind and group, whatever their version. */
export function byOwnerReference({ definition }: Defined): SecondaryToPrimaryMapper {
  const { kind, group } = definition;
  return ownersOf(definition, (owner) => owner.kind === kind && groupOf(owner.apiVersion) === group);
}

/** Maps by owner references of the primary's kind, whatever their group. */
export function byOwnerType({ definition }: Defined): SecondaryToPrimaryMapper {
  return ownersOf(definition, ({ kind }) => kind === definition.kind);
}

/** Maps by labels. */
export function byLabel(primary: Defined, keys: PrimaryKeys): SecondaryToPrimaryMapper {
  return primaryIn("labels", primary, keys);
}

/** Maps by annotations. */
export function byAnnotation(primary: Defined, keys: PrimaryKeys): SecondaryToPrimaryMapper {
  return primaryIn("annotations", primary, keys);
}

/** Maps by the annotations that the runtime writes on dependents that cannot have an owner reference. */
export function byDefaultAnnotations(primary: Defined): SecondaryToPrimaryMapper {
  return byAnnotation(primary, { name: PRIMARY_NAME, namespace: PRIMARY_NAMESPACE, type: PRIMARY_TYPE });
}

/** Maps by everything that ties a dependent to its primary: owner references and the default annotations. */
export function byAnyLink(primary: Defined): SecondaryToPrimaryMapper {
  const byOwner = byOwnerReference(primary);
  const byAnnotations = byDefaultAnnotations(primary);
  return (object) => {
    const owners = byOwner(object);
    const annotated = byAnnotations(object).filter((key) => !owners.includes(key));
    return annotated.length === 0 ? owners : [...owners, ...annotated];
  };
}

/** Returns the keys that a function of the user gave, which may have no types; `wrong` words the error for what is none. */
export function checkedKeys(given: Iterable<unknown>, wrong: (type: string) => string): readonly ObjectKey[] {
  const keys = [...given];
  for (const key of keys) if (typeof key !== "string") throw new TypeError(wrong(typeNameOf(key)));
  return keys as ObjectKey[];
}

/** Names the type of a value, for an error. */
export function typeNameOf(value: unknown): string {
  return value === null ? "null" : typeof value;
}

const NONE: readonly ObjectKey[] = [];

function ownersOf(
  { scope }: ResourceDefinition,
  isPrimary: (owner: { apiVersion: string; kind: string }) => boolean,
): SecondaryToPrimaryMapper {
  return local(({ metadata }) => {
    const owners = metadata.ownerReferences?.filter(isPrimary);
    if (owners === undefined || owners.length === 0) return NONE;
    const namespace = scope === "Namespaced" ? metadata.namespace : undefined;
    return owners.map(({ name }) => keyOf({ name, namespace }));
  });
}

function primaryIn(member: "annotations" | "labels", primary: Defined, keys: PrimaryKeys): SecondaryToPrimaryMapper {
  const { definition } = primary;
  const ownType = typeOfPrimary(definition);
  const mapper: SecondaryToPrimaryMapper = ({ metadata }) => {
    const values = metadata[member];
    const name = values?.[keys.name];
    if (values === undefined || name === undefined) return NONE;
    const type = keys.type === undefined ? undefined : values[keys.type];
    if (type !== undefined && type !== ownType) return NONE;
    if (definition.scope === "Cluster") return [name];
    return [keyOf({ name, namespace: keys.namespace === undefined ? metadata.namespace : values[keys.namespace] })];
  };
  return keys.namespace === undefined ? local(mapper) : mapper;
}
