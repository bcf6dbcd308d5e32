// Mappers from secondaries to primaries (controller-runtime's handler.MapFunc, JOSDK's Mappers). A mapper must be a pure function of the object and
// the primaries that it reads: it is also called with the old state of an object, so that the primaries of that state are reconciled, too.
import {
  type Defined,
  type KubernetesObject,
  type ObjectKey,
  type ResourceDefinition,
  type ResourceReader,
  groupOf,
  keyOf,
} from "../base/kubernetes-object.js";
import { PRIMARY_NAME, PRIMARY_NAMESPACE, PRIMARY_TYPE, typeOfPrimary } from "../base/primary-link.js";

/** Returns the keys of the primaries to reconcile when a secondary changes. Must be pure. */
export type SecondaryToPrimaryMapper<Secondary extends KubernetesObject = KubernetesObject> = (
  secondary: Secondary,
) => readonly ObjectKey[];

/** The second argument of a mapper: the cached primaries and the indexes of the controller. */
export interface MapperContext<Index extends string = string, Primary = KubernetesObject> {
  readonly primaries: Omit<ResourceReader<Primary>, "byIndex" | "list"> & {
    /** Returns the primaries of a namespace, or all primaries. Unsorted for performance, because a mapper is called for every object. */
    list(options?: { readonly namespace?: string }): readonly Primary[];
    /** Reports whether the cache has a primary with this key. */
    has(key: ObjectKey): boolean;
    keys(): Iterable<ObjectKey>;
    /** Returns the keys of the primaries with an index value. */
    keysByIndex(index: Index, value: string): ReadonlySet<ObjectKey>;
    /** Returns the primaries with an index value, sorted by key. */
    byIndex(index: Index, value: string): readonly Primary[];
  };
}

/** A mapper that may read the cached primaries. It is called again for an object when primaries that it has read change. */
export type ContextualMapper<Secondary extends KubernetesObject = KubernetesObject, Primary = KubernetesObject> = (
  secondary: Secondary,
  context: MapperContext<string, Primary>,
) => Iterable<ObjectKey> & object;

/** The second argument of `primaryToSecondary`. */
export interface PrimaryMapperContext<Secondary = object> {
  /**
   * The known objects of the primary's dependents and other event sources, by name, as in a reconcile. The mapper is called again when an object that
   * it may have read changes, even if the filters of that source reject the change.
   */
  readonly secondary: Secondary;
}

/**
 * Returns the keys of the secondaries that a primary refers to, whether or not they exist. Must be pure, except for its reads of `secondary`.
 *
 * @example primaryToSecondary: ({ metadata }, { secondary }) => secondary.users.flatMap(({ status }) => `${metadata.namespace}/${status?.secret}`)
 */
export type PrimaryToSecondaryMapper<Primary extends KubernetesObject = KubernetesObject, Secondary = object> = (
  primary: Primary,
  context: PrimaryMapperContext<Secondary>,
) => readonly ObjectKey[];

/** The keys of labels or annotations that identify a primary. */
export interface PrimaryKeys {
  /** The key for the name. An object without it is not mapped. */
  readonly name: string;
  /** The key for the namespace. An object without it refers to a cluster-scoped primary. Default: the namespace of the object */
  readonly namespace?: string;
  /** The key for the kind, in the form `Kind.group`. An object that refers to another kind is not mapped; one without it is. */
  readonly type?: string;
}

// Mappers that only map objects to primaries in the same namespace.
const localMappers = new WeakSet<SecondaryToPrimaryMapper>();

/** Reports whether a mapper is known to map objects only to primaries in the same namespace. */
export function isLocalMapper(mapper: SecondaryToPrimaryMapper): boolean {
  return localMappers.has(mapper);
}

function local(mapper: SecondaryToPrimaryMapper): SecondaryToPrimaryMapper {
  localMappers.add(mapper);
  return mapper;
}

/** Maps by owner references with the primary's kind and group, in any version. */
export function byOwnerReference({ definition }: Defined): SecondaryToPrimaryMapper {
  const { kind, group } = definition;
  return ownersOf(definition, (owner) => owner.kind === kind && groupOf(owner.apiVersion) === group);
}

/** Maps by owner references with the primary's kind, in any group. */
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

/** Maps by the annotations that the runtime sets on dependents that cannot have an owner reference. */
export function byDefaultAnnotations(primary: Defined): SecondaryToPrimaryMapper {
  return byAnnotation(primary, { name: PRIMARY_NAME, namespace: PRIMARY_NAMESPACE, type: PRIMARY_TYPE });
}

/** Maps by all links of dependents: owner references and the default annotations. */
export function byAnyLink(primary: Defined): SecondaryToPrimaryMapper {
  const byOwner = byOwnerReference(primary);
  const byAnnotations = byDefaultAnnotations(primary);
  return (object) => {
    const owners = byOwner(object);
    const annotated = byAnnotations(object).filter((key) => !owners.includes(key));
    return annotated.length === 0 ? owners : [...owners, ...annotated];
  };
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
