// The only file that imports fast-check, which most tests do not need and all would load. It is configured before the first case is made.
import fc from "fast-check";
import { seed } from "./runs.js";

fc.configureGlobal({ seed });

export type { Arbitrary } from "fast-check";
export default fc;
