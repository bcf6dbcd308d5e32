import { describeObject, type ObjectMeta, type ObjectRef } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { absentOrThrow, sendNamed, type ApiRequester } from "./requester.js";
import { objectPath, queryOf } from "./resource-path.js";

/** How many replicas an object has and shall have (autoscaling/v1). */
export interface Scale {
  readonly apiVersion: "autoscaling/v1";
  readonly kind: "Scale";
  readonly metadata: ObjectMeta;
  readonly spec: { readonly replicas?: number };
  /** `selector` selects the pods that are counted. */
  readonly status?: { readonly replicas: number; readonly selector?: string };
}

/** How many replicas an object shall have, and who says so. */
export interface ScaleOptions {
  readonly replicas: number;
  /** Under whose name the server keeps the number; an apply needs it. */
  readonly fieldManager?: string | undefined;
  /** Applies the number, which then belongs to the field manager. Default: false. */
  readonly apply?: boolean;
  /** Takes the number over from another field manager, for an apply. Default: true. */
  readonly force?: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** How a pod is evicted. */
export interface EvictOptions {
  /** Evicts the pod only if this is its uid; otherwise the server answers 409. */
  readonly uid?: string;
  /** Default: what the pod states. */
  readonly gracePeriodSeconds?: number;
  readonly signal?: AbortSignal | undefined;
}

interface Target {
  readonly definition: ResourceDefinition;
  readonly ref: ObjectRef;
}

/** Reads the Scale of an object; undefined if there is none. */
export async function readScale(
  requester: ApiRequester,
  { definition, ref }: Target,
  { signal }: { readonly signal?: AbortSignal | undefined },
): Promise<Scale | undefined> {
  const request = { method: "GET", path: objectPath(definition, ref, "scale"), signal } as const;
  const what = `get the scale of ${describeObject(definition, ref)}`;
  const answer = await sendNamed(requester, request, what).catch(absentOrThrow);
  return answer && (JSON.parse(answer.body.toString("utf8")) as Scale);
}

/** Writes the number of replicas of an object through its Scale. */
export async function writeScale(
  requester: ApiRequester,
  { definition, ref: { name, namespace } }: Target,
  { replicas, fieldManager, apply = false, force = true, signal }: ScaleOptions,
): Promise<Scale> {
  const ref = { name, namespace };
  const applied = { apiVersion: "autoscaling/v1", kind: "Scale", metadata: ref, spec: { replicas } };
  const request = {
    method: "PATCH",
    path: objectPath(definition, ref, "scale") + queryOf({ fieldManager, force: apply ? force : undefined }),
    contentType: apply ? "application/apply-patch+yaml" : "application/merge-patch+json",
    body: JSON.stringify(apply ? applied : { spec: { replicas } }),
    signal,
  } as const;
  const { body } = await sendNamed(requester, request, `scaling of ${describeObject(definition, ref)}`);
  return JSON.parse(body.toString("utf8")) as Scale;
}

const POD = { group: "", version: "v1", kind: "Pod", plural: "pods", scope: "Namespaced" } as ResourceDefinition;

/** Asks the server to evict a pod; tells whether there was one. */
export async function evictPod(
  requester: ApiRequester,
  { name, namespace }: ObjectRef,
  { uid, gracePeriodSeconds, signal }: EvictOptions,
): Promise<boolean> {
  const metadata = { name, namespace };
  const deleteOptions = { gracePeriodSeconds, ...(uid === undefined ? {} : { preconditions: { uid } }) };
  const body = JSON.stringify({ apiVersion: "policy/v1", kind: "Eviction", metadata, deleteOptions });
  const request = { method: "POST", path: objectPath(POD, metadata, "eviction"), body, signal } as const;
  const what = `eviction of ${describeObject(POD, metadata)}`;
  return (await sendNamed(requester, request, what).catch(absentOrThrow)) !== undefined;
}
