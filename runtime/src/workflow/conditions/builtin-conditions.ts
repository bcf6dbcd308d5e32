import { isDeepStrictEqual } from "node:util";
import { keyOf, type JsonValue, type KubernetesObject, type StatusCondition } from "../../base/kubernetes-object.js";
import { crdNameOf, isReachable, type Defined, type ResourceDefinition } from "../../base/resource-definition.js";
import { missingCondition, missingForBound, missingForReady, waitOfClaim } from "./readiness.js";
import type { Condition, ConditionArguments, ConditionResult } from "../definition/workflow-definition.js";
import type { ServedKind } from "../../sources/kind/crd-source.js";

/**
 * Holds when the object is ready: all replicas of a workload are updated and available, a job is complete, a claim may be used by a Pod (it is bound,
 * or pending), a load balancer has an address, the `Ready` and `Available` conditions of any other kind are true. Kinds without these conditions are ready
 * as soon as they exist. A status that is older than the spec does not count. The detail says what is missing.
 */
export const ready: Condition<unknown, unknown, string> = ({ live }) => {
  const result = judged(live, "is not ready", missingForReady);
  const waits = result === true ? waitOfClaim(live as KubernetesObject) : undefined;
  return waits === undefined ? result : { isMet: true, detail: waits };
};

/**
 * Holds when a PersistentVolumeClaim or a PersistentVolume is bound. With a StorageClass that waits for the first consumer, a claim is bound only
 * after a Pod uses it: whatever creates the Pod must not depend on the claim then. The detail says what a pending claim waits for.
 *
 * @example { readyPostcondition: bound }
 */
export const bound: Condition<unknown, unknown, string> = ({ live }) => judged(live, "is not bound", missingForBound);

// What these return reads nothing but the object itself.
const ofLive = new WeakSet<object>([ready, bound]);

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
// Where the definition is watched, only a kind of an aggregated API server can be served without one.
const CHECK_AGGREGATED_AFTER_MS = 600_000;
const served = new WeakMap<object, Map<string, { isServed: Promise<boolean>; checkedAt: number }>>();

type CrdArguments = ConditionArguments<unknown, unknown>;

/** `crdPresent`, with or without another kind. The condition comes last: types are inferred from it. */
interface CrdPresent {
  (resource: Defined): Condition<unknown, unknown, never>;
  (args: CrdArguments): ReturnType<Condition<unknown, unknown, never>>;
  readonly crd: "own";
}

/**
 * Holds when the API server serves the kind of the dependent or the event source, or another kind: its CustomResourceDefinition is installed, and
 * not being deleted. Fails while the kind is served in other versions only, as objects may exist then: a cleanup waits.
 *
 * The controller watches the definition, so that a change of the definition reconciles the primaries. If the controller may not watch
 * definitions, or the kind is not custom, the API server is asked at most every 10 s, until it serves the kind. A kind that never had a
 * definition may be one of an aggregated API server, which is asked every 10 minutes, or every 10 s while it serves the kind.
 *
 * @example { activationCondition: crdPresent }
 * @example { reconcilePrecondition: not(crdPresent(Route)) }
 */
export const crdPresent: CrdPresent = Object.assign(
  ((given: Defined | CrdArguments): never => {
    if ("dependent" in given) return isPresent(given, given.dependent.definition) as never;
    const { definition } = given;
    return Object.assign((args: CrdArguments) => isPresent(args, definition), { crd: definition }) as never;
  }) as Pick<CrdPresent, never> as CrdPresent,
  { crd: "own" as const },
);

async function isPresent({ dependent, context }: CrdArguments, definition?: ResourceDefinition): Promise<boolean> {
  const { client = context.client } = dependent;
  if (definition === undefined)
    throw new Error("crdPresent is about kinds of Kubernetes, which this dependent is none of");
  const { connection } = client;
  const source = connection === context.client.connection ? context.eventSources.get(crdNameOf(definition)) : undefined;
  const { servedVersions, wasDefined = false } = (source ?? {}) as Partial<ServedKind>;
  if (servedVersions !== undefined && (isReachable(definition, servedVersions) || wasDefined))
    return servedVersions.length > 0;
  const checks = served.get(connection) ?? new Map<string, { isServed: Promise<boolean>; checkedAt: number }>();
  served.set(connection, checks);
  const isWatched = servedVersions !== undefined;
  const kind = `${definition.apiVersion}/${definition.kind}${isWatched ? " aggregated" : ""}`;
  const last = checks.get(kind);
  if (last !== undefined) {
    const isServed = await last.isServed;
    const againAfterMs = isWatched && !isServed ? CHECK_AGGREGATED_AFTER_MS : CHECK_AGAIN_AFTER_MS;
    if ((isServed && !isWatched) || performance.now() - last.checkedAt < againAfterMs) return isServed;
  }
  const isServed = client.servedVersions(definition).then((versions) => isReachable(definition, versions));
  checks.set(kind, { isServed, checkedAt: performance.now() });
  isServed.catch(() => checks.delete(kind));
  return isServed;
}

/** What may ask for the definition of a kind, in whichever of its members. */
type Asking = { readonly resource?: ResourceDefinition | undefined } & object;

/** Returns the kinds whose CustomResourceDefinitions the conditions of dependents, or of event sources, ask for. */
export function kindsAskedFor(all: readonly Asking[]): ResourceDefinition[] {
  // The definitions of other clusters are not watched.
  const asked = all
    .filter((each) => !("cluster" in each) || each.cluster === undefined)
    .flatMap(({ resource, ...members }) =>
      Object.values(members as { readonly [member: string]: unknown }).flatMap((member) => {
        const { crd } = (typeof member === "function" ? member : {}) as { crd?: ResourceDefinition | "own" };
        return (crd === "own" ? resource : crd) ?? [];
      }),
    )
    .filter(({ isCustom }) => isCustom);
  return [...new Map(asked.map((each) => [crdNameOf(each), each])).values()];
}
