import { isApiError } from "../base/errors.js";
import { describeObject, type ObjectMeta, type ObjectRef } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiRequester } from "./requester.js";
import { objectPath, queryOf } from "./resource-path.js";
import { failed } from "./write-request.js";

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
  readonly fieldManager?: string;
  /** Applies the number, which then belongs to the field manager. Default: false. */
  readonly apply?: boolean;
  /** Takes the number over from another field manager, for an apply. Default: true. */
  readonly force?: boolean;
  readonly signal?: AbortSignal;
}

/** How a pod is evicted. */
export interface EvictOptions {
  /** Evicts the pod only if this is its uid; otherwise the server answers 409. */
  readonly uid?: string;
  /** Default: what the pod states. */
  readonly gracePeriodSeconds?: number;
  readonly signal?: AbortSignal;
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
  try {
    const path = objectPath(definition, ref, "scale");
    const { body } = await requester.send({ method: "GET", path, ...(signal && { signal }) });
    return JSON.parse(body.toString("utf8")) as Scale;
  } catch (error) {
    if (isApiError(error, 404)) return undefined;
    throw failed("get the scale of", describeObject(definition, ref), error);
  }
}

/** Writes the number of replicas of an object through its Scale. */
export async function writeScale(
  requester: ApiRequester,
  { definition, ref }: Target,
  options: ScaleOptions,
): Promise<Scale> {
  const { replicas, fieldManager, apply = false, force = true, signal } = options;
  const { name, namespace } = ref;
  const applied = { apiVersion: "autoscaling/v1", kind: "Scale", metadata: { name, namespace }, spec: { replicas } };
  try {
    const { body } = await requester.send({
      method: "PATCH",
      path: objectPath(definition, ref, "scale") + queryOf({ fieldManager, force: apply ? force : undefined }),
      contentType: apply ? "application/apply-patch+yaml" : "application/merge-patch+json",
      body: JSON.stringify(apply ? applied : { spec: { replicas } }),
      ...(signal && { signal }),
    });
    return JSON.parse(body.toString("utf8")) as Scale;
  } catch (error) {
    throw failed("scaling of", describeObject(definition, ref), error);
  }
}

const POD = { group: "", version: "v1", kind: "Pod", plural: "pods", scope: "Namespaced" } as ResourceDefinition;

/** Asks the server to evict a pod; tells whether there was one. */
export async function evictPod(requester: ApiRequester, ref: ObjectRef, options: EvictOptions): Promise<boolean> {
  const { uid, gracePeriodSeconds, signal } = options;
  const { name, namespace } = ref;
  const deleteOptions = { gracePeriodSeconds, ...(uid === undefined ? {} : { preconditions: { uid } }) };
  const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace }, deleteOptions };
  const path = objectPath(POD, ref, "eviction");
  try {
    await requester.send({ method: "POST", path, body: JSON.stringify(eviction), ...(signal && { signal }) });
    return true;
  } catch (error) {
    if (isApiError(error, 404)) return false;
    throw failed("eviction of", describeObject(POD, ref), error);
  }
}
