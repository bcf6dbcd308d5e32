import type { ControllerModel } from "../../model/project-model.js";
import type { ControllerNames } from "../controller-names.js";

/** A controller with what its files call things. */
export interface NamedController {
  readonly controller: ControllerModel;
  readonly names: ControllerNames;
  /** Whether it calls a reconciler of the user's, which is there or is written. */
  readonly hasReconciler: boolean;
}

/** A file that the user fills in. */
export interface Stub {
  readonly path: string;
  /** Returns its text, before that is formatted. */
  render(): Promise<string>;
}
