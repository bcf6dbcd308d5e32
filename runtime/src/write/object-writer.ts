// What all writers of objects have in common.
import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { Verdict } from "../match/match.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import type { ExistingPolicy } from "./existing-object.js";
import type { Stated } from "./send/plan.js";
import type { PostponedWrite, WriteCause } from "./send/postponed-write.js";
import type { DeletionSending } from "./send/send.js";

/** What a write did; nothing is written while an object is being deleted. */
export type Written =
  | {
      readonly kind: "created" | "updated" | "unchanged" | "terminating";
      readonly entry: DecodedResource;
      /** Why it was not a match; absent if nothing was sent. */
      readonly verdict?: Mismatch;
    }
  /** The object is left as it is, although it is not as desired. */
  | { readonly kind: "postponed"; readonly entry: DecodedResource; readonly postponed: PostponedWrite };

/** What is known of an object that is written, and what may be done to it. */
export interface ApplyOptions {
  /** Its state, if it exists and may be written. */
  readonly live: DecodedResource | undefined;
  /** What to do about one that exists and does not belong to the same primary. Default: `refuse` */
  readonly existing?: ExistingPolicy | undefined;
  /** What is written to such an object, in place of what is desired. */
  readonly adoption?: Stated | undefined;
  /** Whether one of the same primary that exists after all, though the watch does not show it, is left as it is. */
  readonly isOnlyCreated?: boolean;
  /** Whether it is written without being compared: somebody else found it different. */
  readonly isForced?: boolean;
  readonly cause?: WriteCause | undefined;
}

/** Writes objects, and only those that are not as desired already. */
export interface ObjectWriter {
  /**
   * Makes an object as desired. Without a live one it is created, which fails if there is one after all that is not of this primary and
   * must not be adopted.
   */
  apply(target: WriteTarget, desired: Stated, options: ApplyOptions): Promise<Written>;
  /** Deletes an object, unless it was made anew meanwhile; tells whether it is gone at once. */
  delete(target: WriteTarget, live: KubernetesObject, options?: DeletionSending): Promise<boolean>;
  /** Takes off an object what ties it to a primary, and leaves it alone otherwise. */
  untie(target: WriteTarget, live: DecodedResource, options: UntieOptions): Promise<void>;
}

/** What an object is untied from. */
export interface UntieOptions {
  readonly primary: KubernetesObject;
  readonly cause?: WriteCause | undefined;
}

/** Why an object is not as desired. */
export type Mismatch = Verdict & { readonly matches: false };

/** One way to write: by server-side apply, or by POST and PUT. */
export interface WriteMethod {
  /** Creates an object; throws a conflict (409) if it exists. */
  create(target: WriteTarget, desired: Stated, cause: WriteCause | undefined): Promise<Written>;
  /** Makes an object that exists as desired, if it is not. */
  change(target: WriteTarget, desired: Stated, options: ChangeOptions): Promise<Written>;
}

/** What is known of an object that is changed. */
export interface ChangeOptions extends Pick<ApplyOptions, "isForced" | "cause"> {
  readonly live: DecodedResource;
}
