import type { KubernetesObject, ObjectKey } from "../../base/kubernetes-object.js";
import type { LoopFinding } from "../../write/loop-guard.js";

/** A dependent whose object is written over and over. */
export interface LoopingDependent {
  readonly dependent: string;
  readonly primary: KubernetesObject;
  /** The kind of the object, such as `Deployment.v1.apps`. */
  readonly kind: string;
  readonly object: ObjectKey;
}

/** Told of dependents whose objects are written over and over. */
export interface LoopListener {
  /** Told after every write of a loop. */
  onLoop(at: LoopingDependent, loop: LoopFinding): void;
  /** Told when an object is left as it is for now, so that the primary is reconciled again after `pauseMs`. */
  onPostponed(at: LoopingDependent, pauseMs: number): void;
}
