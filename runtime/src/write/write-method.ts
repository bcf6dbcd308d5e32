import type { DecodedResource } from "../base/decoded-resource.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import type { Stated } from "./send/plan.js";
import type { WriteCause } from "./send/postponed-write.js";
import type { Sent } from "./send/send.js";

/**
 * What a write did. Nothing is written while an object is being deleted (`terminating`), or if the object is not the one, or not in the version,
 * from which `desired` was computed (`unseen`).
 */
export type Written =
  | Sent
  | { readonly kind: "terminating"; readonly entry: DecodedResource }
  /** `isForeign`: it does not belong to the primary yet, and may be adopted. */
  | { readonly kind: "unseen"; readonly entry: DecodedResource; readonly isForeign?: boolean };

/** The version of the live object that `desired` read; undefined if it saw that there is none. */
export interface WriteBasis {
  readonly version: string | undefined;
}

/** What is known of an object that is changed. */
export interface ChangeOptions {
  readonly live: DecodedResource;
  /** Whether it is written without being compared: somebody else found it different. */
  readonly isForced?: boolean;
  /** Present if `desired` read the live object: then no other version is replaced. */
  readonly basis?: WriteBasis | undefined;
  /** Paths of fields that belong to another controller, such as `spec.replicas`: they keep their value. */
  readonly released?: readonly string[] | undefined;
  readonly cause?: WriteCause | undefined;
}

/** One way to write: by server-side apply, or by POST and PUT. */
export interface WriteMethod {
  /** Creates an object; fails with a conflict (409) if it exists. */
  create(target: WriteTarget, desired: Stated, cause: WriteCause | undefined): Promise<Sent>;
  /** Makes an object as desired; undefined if it is gone, or another one has its name, and the watch has not shown that. */
  change(target: WriteTarget, desired: Stated, options: ChangeOptions): Promise<Written | undefined>;
}
