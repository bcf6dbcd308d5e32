import type { Arbitrary } from "../fast-check.js";

/** A kind that random requests are about. */
export interface RandomKind {
  /** `$cm` and the like, as scenarios name it. */
  path: string;
  kind: string;
  /** Absent for the version that scenarios take. */
  apiVersion?: string;
  /** What every object is created with. */
  base: object;
  /** Part of an object, without metadata. */
  part: Arbitrary<object>;
  /** Part of its status; absent without the subresource. */
  status?: Arbitrary<object>;
  scale?: true;
}
