// Imports and configures fast-check. It is imported only here, so that tests without properties do not load it.
import fc from "fast-check";
import { seed } from "./runs.js";

fc.configureGlobal({ seed });

export type { Arbitrary } from "fast-check";
export default fc;
