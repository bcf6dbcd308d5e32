import { TerminalError } from "../base/errors.js";
import {
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  type OwnerReference,
} from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { DecodedResource } from "../cluster/decode-resource.js";
import {
  DEPENDENT_NAME,
  OWNER_INDEX,
  PRIMARY_NAME,
  PRIMARY_NAMESPACE,
  PRIMARY_TYPE,
  typeOfPrimary,
} from "../cluster/primary-link.js";
import type { ResourceView } from "../cluster/resource-view.js";
import type { PlanNode } from "./plan.js";
import type { KubernetesDependent } from "./workflow-definition.js";

/** What a user's `desired` returned, completed to what is applied. */
export interface DesiredObject {
  metadata: ObjectMeta;
  [field: string]: unknown;
}

/** Whose object it is that is completed. */
export interface DesiredOwner {
  readonly node: PlanNode<KubernetesDependent>;
  readonly primary: KubernetesObject;
  readonly definition: ResourceDefinition;
  /** The namespaces that the controller watches; all of them if absent. */
  readonly namespaces?: readonly string[] | undefined;
}

/** Completes what `desired` returned: the namespace, and the link to the primary. Throws a TerminalError if it cannot be applied. */
export function completeDesired(
  desired: unknown,
  { node, primary, definition, namespaces }: DesiredOwner,
): DesiredObject {
  const { resource, name, namespace: stated, isGarbageCollected, labelSelector } = node.definition;
  const fail = (problem: string) => new TerminalError(`desired() of dependent "${name}" ${problem}`);
  if (typeof desired !== "object" || desired === null)
    throw fail(`returned ${desired === null ? "null" : typeof desired}`);
  const { apiVersion = resource.apiVersion, kind = resource.kind, ...rest } = desired as Partial<KubernetesObject>;
  if (apiVersion !== resource.apiVersion || kind !== resource.kind)
    throw fail(
      `returned a ${kind} of ${apiVersion}, and the dependent is a ${resource.kind} of ${resource.apiVersion}`,
    );
  const metadata = rest.metadata;
  if (typeof metadata?.name !== "string" || metadata.name === "") throw fail("returned no metadata.name");
  const isNamespaced = resource.scope === "Namespaced";
  const namespace = isNamespaced ? (metadata.namespace ?? stated ?? primary.metadata.namespace) : undefined;
  if (isNamespaced && namespace === undefined) throw fail("returned no metadata.namespace, and its primary has none");
  const watched = stated === undefined ? namespaces : [stated];
  if (namespace !== undefined && watched !== undefined && !watched.includes(namespace))
    throw fail(`puts the object into namespace "${namespace}", and the controller watches ${watched.join(", ")} only`);
  if (isGarbageCollected && definition.scope === "Namespaced" && namespace !== primary.metadata.namespace)
    throw fail(
      `puts the object into ${namespace === undefined ? "no namespace" : `namespace "${namespace}"`}, where no owner reference to its ` +
        "primary is allowed; state garbageCollected: false in the workflow spec",
    );
  if (labelSelector !== undefined && !isSelected(metadata.labels ?? {}, labelSelector))
    throw fail(`lacks the labels that its labelSelector "${labelSelector}" asks for`);
  const annotations = annotationsOf(node, primary, definition);
  const link = {
    ...(namespace === undefined ? {} : { namespace }),
    ...(Object.keys(annotations).length === 0 ? {} : { annotations: { ...metadata.annotations, ...annotations } }),
    ...(isGarbageCollected
      ? { ownerReferences: [...(metadata.ownerReferences ?? []), ownerReferenceTo(primary, definition)] }
      : {}),
  };
  return { ...rest, metadata: { ...metadata, ...link } };
}

function annotationsOf(
  { definition: { isGarbageCollected, name }, sharesKind }: PlanNode<KubernetesDependent>,
  { metadata }: KubernetesObject,
  primary: ResourceDefinition,
): { [key: string]: string } {
  const annotations: { [key: string]: string } = {};
  if (!isGarbageCollected) {
    annotations[PRIMARY_NAME] = metadata.name;
    if (metadata.namespace !== undefined) annotations[PRIMARY_NAMESPACE] = metadata.namespace;
    annotations[PRIMARY_TYPE] = typeOfPrimary(primary);
  }
  if (sharesKind) annotations[DEPENDENT_NAME] = name;
  return annotations;
}

function ownerReferenceTo({ metadata }: KubernetesObject, { apiVersion, kind }: ResourceDefinition): OwnerReference {
  const { name, uid = "" } = metadata;
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** Returns the live object of a dependent: the one that `desired` names, or before that is known, the one that belongs to the primary. */
export function findLive(
  cache: ResourceView,
  {
    node,
    primaryKey,
    desiredKey,
  }: { node: PlanNode<KubernetesDependent>; primaryKey: ObjectKey; desiredKey: ObjectKey | undefined },
): DecodedResource | undefined {
  const owned = cache.keysByIndex(OWNER_INDEX, primaryKey);
  if (desiredKey !== undefined) return owned.has(desiredKey) ? cache.get(desiredKey) : undefined;
  const { name } = node.definition;
  for (const key of [...owned].sort()) {
    const entry = cache.get(key);
    if (entry !== undefined && (!node.sharesKind || entry.object.metadata.annotations?.[DEPENDENT_NAME] === name))
      return entry;
  }
  return undefined;
}

/** Returns the key that an object built by `completeDesired` has. */
export function keyOfDesired({ metadata }: DesiredObject): ObjectKey {
  return keyOf(metadata);
}

const selectors = new Map<string, readonly (readonly [key: string, value: string])[]>();

// Only equality can be checked here without a parser; other requirements are left to the user.
function isSelected(labels: { [key: string]: string }, selector: string): boolean {
  let requirements = selectors.get(selector);
  if (requirements === undefined) {
    requirements = selector.split(",").flatMap((requirement) => {
      const match = /^\s*([^=!<>\s()]+)\s*==?\s*([^=!<>\s()]*)\s*$/.exec(requirement);
      return match === null ? [] : [[match[1]!, match[2]!] as const];
    });
    selectors.set(selector, requirements);
  }
  return requirements.every(([key, value]) => labels[key] === value);
}
