/** Which requests a fault is for: those for which every member holds. */
export interface FaultScope {
  /** A part of the path, or a pattern for it. */
  path?: string | RegExp;
  /** The kind that the path names: `ConfigMap`, or with its group and version `apps/v1/Deployment`. */
  kind?: string;
  /** The namespace that the path names; requests across namespaces are not affected. */
  namespace?: string;
  /** The user who asks, for example `system:serviceaccount:web:operator`. */
  user?: string;
}

/** A request as scopes see it; what costs something is looked up where a scope is about it. */
export interface AskedFor {
  readonly path: string;
  readonly namespace: string | undefined;
  /** `v1/ConfigMap`; undefined where the path names no kind. */
  readonly kind: () => string | undefined;
  /** Undefined for a token of nobody. */
  readonly user: () => string | undefined;
}

/** True if a fault is for a request. */
export function isInScope({ path, kind, namespace, user }: FaultScope, asked: AskedFor): boolean {
  if (namespace !== undefined && namespace !== asked.namespace) return false;
  if (path !== undefined && !(typeof path === "string" ? asked.path.includes(path) : path.test(asked.path)))
    return false;
  if (kind !== undefined && !isKind(kind, asked.kind())) return false;
  return user === undefined || user === asked.user();
}

function isKind(wanted: string, actual: string | undefined): boolean {
  return actual !== undefined && (actual === wanted || actual.slice(actual.lastIndexOf("/") + 1) === wanted);
}
