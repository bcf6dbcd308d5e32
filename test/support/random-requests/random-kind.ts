import type { Arbitrary } from "../fast-check.js";

/** A kind for random requests. */
export interface RandomKind {
  /** The variable for the path in scenarios, such as `$cm`. */
  path: string;
  kind: string;
  /** Undefined for the version that scenarios use. */
  apiVersion?: string;
  /** The content of each new object. */
  base: object;
  /** Partial objects without metadata. */
  part: Arbitrary<object>;
  /** Partial values of status; undefined without the subresource. */
  status?: Arbitrary<object>;
  scale?: true;
}
