import type { ObjectMeta } from "../base/kubernetes-object.js";
import type { DecodedResource, FieldManagers } from "../base/decoded-resource.js";

/** What every read may state. */
export interface ReadOptions {
  /** Ends the request. */
  readonly signal?: AbortSignal | undefined;
}

/** Which objects of a kind are read. */
export interface ListOptions extends ReadOptions {
  /** Default: all namespaces. */
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** Which objects a watch follows, and from when on. */
export interface WatchOptions extends ListOptions {
  /** The version after which the events begin. Default: what exists comes first. */
  readonly resourceVersion?: string | undefined;
  /** Whether the server may send BOOKMARK events, which say how far the watch has come. Default: false. */
  readonly allowBookmarks?: boolean | undefined;
}

/** How an object is deleted. */
export interface DeleteOptions extends ReadOptions {
  /** Deletes the object only if this is its uid; otherwise the server answers 409. */
  readonly uid?: string | undefined;
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan" | undefined;
  /** Whose managed fields the object that is held is returned with. */
  readonly fieldManagers?: FieldManagers;
}

/** What became of a deletion. */
export interface Deletion {
  readonly wasFound: boolean;
  /** False while a finalizer or a grace period holds the object. */
  readonly isGone: boolean;
  /** The object that is held, with what the field managers that were asked for applied. */
  readonly entry?: DecodedResource;
}

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
export interface ScaleOptions extends ReadOptions {
  readonly replicas: number;
  /** Under whose name the server keeps the number; an apply needs it. */
  readonly fieldManager?: string | undefined;
  /** Applies the number, which then belongs to the field manager; built-in kinds only. Default: false. */
  readonly apply?: boolean;
  /** Takes the number over from another field manager, for an apply. Default: true. */
  readonly force?: boolean;
}

/** How a pod is evicted. */
export interface EvictOptions extends ReadOptions {
  /** Evicts the pod only if this is its uid; otherwise the server answers 409. */
  readonly uid?: string;
  /** Default: what the pod states. */
  readonly gracePeriodSeconds?: number;
}
