import type { DecodedResource } from "../base/decoded-resource.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import type { Stated } from "./send/plan.js";
import type { WriteCause } from "./send/postponed-write.js";
import type { Sent } from "./send/send.js";

/** What a write did; nothing is written while an object is being deleted. */
export type Written = Sent | { readonly kind: "terminating"; readonly entry: DecodedResource };

/** What is known of an object that is changed. */
export interface ChangeOptions {
  readonly live: DecodedResource;
  /** Whether it is written without being compared: somebody else found it different. */
  readonly isForced?: boolean;
  readonly cause?: WriteCause | undefined;
}

/** One way to write: by server-side apply, or by POST and PUT. */
export interface WriteMethod {
  /** Creates an object; fails with a conflict (409) if it exists. */
  create(target: WriteTarget, desired: Stated, cause: WriteCause | undefined): Promise<Sent>;
  /** Makes an object as desired; undefined if it is gone, or another one has its name, and the watch has not shown that. */
  change(target: WriteTarget, desired: Stated, options: ChangeOptions): Promise<Written | undefined>;
}
