import { isDeepStrictEqual } from "node:util";
import { keyOf, type JsonValue, type KubernetesObject, type StatusCondition } from "../../base/kubernetes-object.js";
import { crdNameOf, isReachable, type ResourceDefinition } from "../../base/resource-definition.js";
import { missingCondition, missingForReady } from "./readiness.js";
import {
  isKubernetes,
  type Condition,
  type ConditionResult,
  type DependentDefinition,
} from "../definition/workflow-definition.js";
import type { ServedKind } from "../../sources/kind/crd-source.js";

/**
 * Holds when the object is ready: all replicas of a workload are updated and available, a job is complete, a volume is bound, a load
 * balancer has an address, the `Ready` and `Available` conditions of any other kind are true. Kinds without these conditions are ready
 * as soon as they exist. A status that is older than the spec does not count. The detail says what is missing.
 */
export const ready: Condition<unknown, unknown, string> = ({ live }) => judged(live, "is not ready", missingForReady);

// What these return reads nothing but the object itself.
const ofLive = new WeakSet<object>([ready]);

/** Tells whether a condition reads nothing but the object of its dependent, as the built-in conditions of objects do. */
export function readsLiveAlone(condition: object | undefined): boolean {
  return condition !== undefined && ofLive.has(condition);
}

function ofLiveAlone<Each extends object>(condition: Each): Each {
  ofLive.add(condition);
  return condition;
}

/** Holds when the object is gone; as a deletePostcondition it keeps what it depends on until then. */
export const deleted: Condition<unknown, unknown, never> = ({ live }) => live === undefined;

/** Holds when the object has this condition with this status, not older than the spec. The detail says what the object has instead. */
export function conditionIs(condition: Pick<StatusCondition, "type" | "status">): Condition<unknown, unknown, string> {
  return ofLiveAlone(({ live }) =>
    judged(live, `lacks ${condition.type}=${condition.status}`, (object) => missingCondition(object, condition)),
  );
}

/** Holds when a field has this value; `path` leads to it: `status.phase`. The detail names the field, not its value, which may be secret. */
export function fieldEquals(path: string, value: JsonValue): Condition<unknown, unknown, string> {
  const names = path.split(".");
  return ofLiveAlone(({ live }) =>
    judged(live, "is not as awaited", (object) => {
      let field: unknown = object;
      for (const name of names) {
        if (typeof field !== "object" || field === null || !Object.hasOwn(field, name)) return `it has no ${path}`;
        field = (field as { [name: string]: unknown })[name];
      }
      return isDeepStrictEqual(field, value) ? undefined : `its ${path} has another value`;
    }),
  );
}

// The detail names the object. An external resource may have no kind and no name.
function judged(
  live: unknown,
  problem: string,
  missingIn: (object: KubernetesObject) => string | undefined,
): boolean | ConditionResult<string> {
  if (live === undefined) return { isMet: false, detail: "it does not exist yet" };
  const { kind, metadata } = live as Partial<KubernetesObject>;
  const missing = missingIn(live as KubernetesObject);
  if (missing === undefined) return true;
  const name = metadata?.name === undefined ? "" : `${kind} ${keyOf(metadata)} `;
  return { isMet: false, detail: `${name}${problem}: ${missing}` };
}

// As JOSDK's CRDPresentActivationCondition: the check for an absent kind is repeated after 10 s at the earliest, for a present kind never.
const CHECK_AGAIN_AFTER_MS = 10_000;
const served = new WeakMap<object, Map<string, { isServed: Promise<boolean>; checkedAt: number }>>();

/**
 * Holds when the API server serves the kind of the dependent: its CustomResourceDefinition is installed, and not being deleted. Fails while the kind
 * is served in other versions only, as the object may exist then: a cleanup waits.
 *
 * The controller watches the definition, so that a change of the definition reconciles the primaries. If the controller may not watch
 * definitions, or the kind is not custom, the API server is asked at most every 10 s, until it serves the kind.
 */
export const crdPresent: Condition<unknown, unknown, never> = async ({ dependent, context }) => {
  const { definition, client = context.client } = dependent;
  if (definition === undefined)
    throw new Error("crdPresent is about kinds of Kubernetes, which this dependent is none of");
  const { connection } = client;
  const source = connection === context.client.connection ? context.eventSources.get(crdNameOf(definition)) : undefined;
  const watched = source as Partial<ServedKind> | undefined;
  if (watched?.servedVersions !== undefined) return isReachable(definition, watched.servedVersions);
  const checks = served.get(connection) ?? new Map<string, { isServed: Promise<boolean>; checkedAt: number }>();
  served.set(connection, checks);
  const kind = `${definition.apiVersion}/${definition.kind}`;
  const last = checks.get(kind);
  if (last !== undefined && ((await last.isServed) || performance.now() - last.checkedAt < CHECK_AGAIN_AFTER_MS))
    return last.isServed;
  const isServed = client.servedVersions(definition).then((versions) => isReachable(definition, versions));
  checks.set(kind, { isServed, checkedAt: performance.now() });
  isServed.catch(() => checks.delete(kind));
  return isServed;
};

/** Returns the kinds whose CustomResourceDefinitions the conditions of dependents ask for. */
export function kindsAskedFor(dependents: readonly DependentDefinition[]): ResourceDefinition[] {
  // The definitions of other clusters are not watched.
  const asking = dependents
    .filter(isKubernetes)
    .filter(({ cluster, ...dependent }) => cluster === undefined && Object.values(dependent).includes(crdPresent))
    .flatMap(({ resource }) => (resource.isCustom ? resource : []));
  return [...new Map(asking.map((each) => [crdNameOf(each), each])).values()];
}
