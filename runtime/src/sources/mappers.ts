// Mappers from a secondary to its primaries (controller-runtime handler.MapFunc, JOSDK Mappers). A mapper must be a pure function of the object and of
// the primaries that it reads: it is also called with the old state of an object, so that the primaries of that state are reconciled.
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

/** The second argument of a mapper: the cached primaries, with the indexes of the controller. */
export interface MapperContext<Index extends string = string, Primary = KubernetesObject> {
  readonly primaries: Omit<ResourceReader<Primary>, "byIndex" | "list"> & {
    /** Returns the primaries of a namespace, or all of them, in no particular order: a mapper is called for each object. */
    list(options?: { readonly namespace?: string }): readonly Primary[];
    /** Tells whether the cache has a primary with this key. */
    has(key: ObjectKey): boolean;
    keys(): Iterable<ObjectKey>;
    /** Returns the keys of the primaries that are indexed under `value`. */
    keysByIndex(index: Index, value: string): ReadonlySet<ObjectKey>;
    /** Returns the primaries that are indexed under `value`, sorted by key. */
    byIndex(index: Index, value: string): readonly Primary[];
  };
}

/** A mapper that may read the cached primaries. It is called again for an object when the primaries change that it read. */
export type ContextualMapper<Secondary extends KubernetesObject = KubernetesObject, Primary = KubernetesObject> = (
  secondary: Secondary,
  context: MapperContext<string, Primary>,
) => Iterable<ObjectKey> & object;

/** The second argument of `primaryToSecondary`. */
export interface PrimaryMapperContext<Secondary = object> {
  /**
   * The known objects of the dependents and the other event sources of the primary, by name, as a reconcile sees them. When one changes that the
   * mapper may have read, the mapper is called again, even if the filters of its source reject the change.
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

/** The keys of the labels or annotations that name a primary. */
export interface PrimaryKeys {
  /** The key of the name; an object without it is mapped to no primary. */
  readonly name: string;
  /** The key of the namespace; an object without it names a cluster-scoped primary. Default: the namespace of the object. */
  readonly namespace?: string;
  /** The key of the kind, written as `Kind.group`; an object that names another kind is mapped to no primary. */
  readonly type?: string;
}

// The mappers that map an object only to primaries of its own namespace.
const localMappers = new WeakSet<SecondaryToPrimaryMapper>();

/** Tells whether a mapper is known to map an object only to primaries of its own namespace. */
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
