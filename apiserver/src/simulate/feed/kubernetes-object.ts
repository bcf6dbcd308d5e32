export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

/** The metadata that the simulated controllers read. */
interface ObjectMetadata {
  name: string;
  generateName?: string;
  namespace?: string;
  uid: string;
  resourceVersion: string;
  generation?: number;
  labels?: Record<string, string>;
  creationTimestamp?: string;
  deletionTimestamp?: string;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: OwnerReference[];
}

/** An object of any kind; items of lists may have no apiVersion and kind. */
export interface KubernetesObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMetadata;
}

/** A served resource. */
export interface ResourceKind {
  group: string;
  version: string;
  kind: string;
  plural: string;
  namespaced: boolean;
  verbs: string[];
}

/** `apps/v1`, or `v1` for the core group. */
export function apiVersionOf({ group, version }: ResourceKind): string {
  return group === "" ? version : `${group}/${version}`;
}

/** Returns the path of a collection or of an object. */
export function pathOf(kind: ResourceKind, { namespace, name }: { namespace?: string; name?: string } = {}): string {
  const root = kind.group === "" ? "/api" : `/apis/${kind.group}`;
  const scope = kind.namespaced && namespace !== undefined ? `/namespaces/${namespace}` : "";
  // Names of RBAC objects may contain colons and other reserved characters.
  const item = name === undefined ? "" : `/${encodeURIComponent(name)}`;
  return `${root}/${kind.version}${scope}/${kind.plural}${item}`;
}

/** The key of an object: `namespace/name`, or `name` if it is cluster-scoped. */
export function keyOfObject({ namespace, name }: { namespace?: string; name: string }): string {
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** Returns the controller reference of an object. */
export function controllerOf({ metadata }: KubernetesObject): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/** LabelSelector of apimachinery. */
export interface LabelSelector {
  matchLabels?: Record<string, string>;
  matchExpressions?: { key: string; operator: string; values?: string[] }[];
}

/** Evaluates a label selector. An empty selector matches everything, an absent one nothing. */
export function selects(selector: LabelSelector | undefined, labels: Record<string, string> = {}): boolean {
  if (selector === undefined) return false;
  const { matchLabels = {}, matchExpressions = [] } = selector;
  return (
    Object.entries(matchLabels).every(([key, value]) => labels[key] === value) &&
    matchExpressions.every((expression) => holdsFor(expression, labels))
  );
}

/** Evaluates a selector requirement. */
export function holdsFor(
  { key, operator, values = [] }: { key: string; operator: string; values?: string[] },
  labels: Record<string, string>,
): boolean {
  const value = labels[key];
  switch (operator) {
    case "In":
      return value !== undefined && values.includes(value);
    case "NotIn":
      return value === undefined || !values.includes(value);
    case "Exists":
      return value !== undefined;
    default:
      return value === undefined;
  }
}

/** Compares JSON values; the order of keys is ignored, and undefined members count as absent. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) || Array.isArray(b)) {
    if (!Array.isArray(a) || !Array.isArray(b) || a.length !== b.length) return false;
    return a.every((value, index) => isSame(value, b[index]));
  }
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  for (const key in left) if (!isSame(left[key], right[key])) return false;
  for (const key in right) if (right[key] !== undefined && left[key] === undefined) return false;
  return true;
}
