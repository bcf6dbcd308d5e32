import type { KubernetesObject } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { DecodedResource } from "../base/decoded-resource.js";
import type { Verdict } from "../match/match.js";
import type { WriteTarget } from "./send/apply-matcher.js";
import type { PlannedWrite, Stated } from "./send/plan.js";
import type { WriteCause } from "./send/postponed-write.js";
import type { Sent } from "./send/send.js";

/** What a write did; nothing is written while an object is being deleted. */
export type Written =
  | Extract<Sent, { readonly kind: "postponed" }>
  | {
      readonly kind: "created" | "updated" | "unchanged" | "terminating";
      readonly entry: DecodedResource;
      /** Why the object was not as desired; absent if nothing was sent. */
      readonly verdict?: Verdict & { readonly matches: false };
    };

/** What is known of an object that is changed. */
export interface ChangeOptions {
  readonly live: DecodedResource;
  /** Whether it is written without being compared: somebody else found it different. */
  readonly isForced?: boolean;
  readonly cause?: WriteCause | undefined;
}

/** One way to write: by server-side apply, or by POST and PUT. */
export interface WriteMethod {
  /** Plans a creation, which fails with a conflict (409) if the object exists. */
  planCreation(definition: ResourceDefinition, desired: Stated): PlannedWrite;
  /** Makes an object as desired; undefined if it is gone, or another one has its name, and the watch has not shown that. */
  change(target: WriteTarget, desired: Stated, options: ChangeOptions): Promise<Written | undefined>;
  /** Takes what the server made of an object. */
  learn?(target: WriteTarget, desired: Stated, stored: KubernetesObject): void;
}
