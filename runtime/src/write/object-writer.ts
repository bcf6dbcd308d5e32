// What all writers of objects have in common.
import type { KubernetesObject, ObjectMeta, ObjectRef } from "../base/kubernetes-object.js";
import type { ApiClient } from "../client/api-client.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { WriteTarget } from "./apply-matcher.js";
import type { ExistingPolicy } from "./existing-object.js";
import type { LoopFinding } from "./loop-guard.js";
import type { Verdict } from "../match/match.js";

export type { WriteTarget } from "./apply-matcher.js";

/** What a write did; nothing is written while an object is being deleted. */
export interface Written {
  readonly kind: "created" | "updated" | "unchanged" | "terminating";
  readonly entry: DecodedResource;
  /** Why it was not a match; absent for an unchanged object. */
  readonly verdict?: Mismatch;
  /** The loop that the write belongs to: the same was written before, and undone each time. */
  readonly loop?: LoopFinding;
  /** How long the object is left as it is although it is not as desired, because it is in a loop. */
  readonly postponedMs?: number;
}

/** An object as it is desired; the kind is that of the target. */
export type StatedObject = object & { readonly metadata: ObjectRef & Partial<ObjectMeta> };

/** What is known of an object that is written, and what may be done to it. */
export interface ApplyOptions {
  /** Its state, if it exists and may be written. */
  readonly live: DecodedResource | undefined;
  /** What to do about one that exists and does not belong to the same primary: that is an error unless told otherwise. */
  readonly existing?: ExistingPolicy | undefined;
  /** What is written to such an object, in place of what is desired. */
  readonly adoption?: StatedObject | undefined;
  /** Whether one of the same primary that exists after all, though the watch does not show it, is left as it is. */
  readonly isOnlyCreated?: boolean;
  /** Whether it is written without being compared: somebody else found it different. */
  readonly isForced?: boolean;
  readonly signal?: AbortSignal;
}

/** What becomes of the objects that a deleted object owns. */
export interface DeletePolicy {
  readonly propagationPolicy?: "Background" | "Foreground" | "Orphan";
}

/** Writes objects, and only those that are not as desired already. */
export interface ObjectWriter {
  /**
   * Makes an object as desired. Without a live one it is created, which fails if there is one after all that is not of this primary and
   * must not be adopted.
   */
  apply(target: WriteTarget, stated: StatedObject, options: ApplyOptions): Promise<Written>;
  /** Deletes an object, unless it was made anew meanwhile; tells whether it is gone at once. */
  delete(target: WriteTarget, live: KubernetesObject, options?: DeletePolicy): Promise<boolean>;
  /** Takes off an object what ties it to a primary, and leaves it alone otherwise. */
  untie(target: WriteTarget, live: DecodedResource, primary: KubernetesObject): Promise<void>;
}

/** With what a writer writes. */
export interface WriterOptions {
  /** Returns the client of the cluster, which may be there only while something is watched. */
  readonly client: () => ApiClient;
  readonly fieldManager: string;
  /** All that the operator writes with: they share what the answers bring. */
  readonly fieldManagers: Iterable<string>;
}

/** Why an object is not as desired. */
export type Mismatch = Verdict & { readonly matches: false };
