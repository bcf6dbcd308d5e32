// The previous generation, as recorded in the manifest. Dependents that are removed from a spec may still have objects in clusters.
import type { UntypedKindSpec } from "../read/workflow-spec.js";

/** A dependent of a previous generation, which may have been deployed. */
export interface RememberedDependent {
  readonly controller: string;
  readonly name: string;
  /** Its kind as in a spec; `external` for external resources. */
  readonly resource: string | UntypedKindSpec;
  readonly isReadOnly?: true;
  readonly namespace?: string;
  readonly cluster?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** Its deletion. Default: garbageCollected */
  readonly deletion?: "ordered" | "orphan";
  /** Where the ids of external resources are stored. */
  readonly state?: string;
}

/** A controller of the last generation. */
export interface RememberedController {
  readonly name: string;
  /** Kind of its primary, for example `example.com/v1/WebPage`. */
  readonly primary: string;
}

/** The recorded state of the last generation. */
export interface ProjectMemory {
  readonly dependents: readonly RememberedDependent[];
  /** Controllers of the last generation. Default: none; manifests of older generators do not record them */
  readonly controllers?: readonly RememberedController[];
  /** Existing stubs of dependents, which are evidence of former dependents if there is no manifest. */
  readonly stubs: readonly StubWitness[];
  /** True if a run was interrupted, so that dependents of two generations are recorded. */
  readonly isUnfinished?: boolean;
}

/** A user file that was generated as the stub of a dependent: `src/webpage/dependents/web-server.ts`. */
export interface StubWitness {
  /** Folder of the controller, for example `webpage`. */
  readonly folder: string;
  /** Name of the file, for example `web-server`. */
  readonly name: string;
  readonly file: string;
}

/** Stands for the kind of an external dependent. */
export const EXTERNAL = "external";

/** No previous generation is known. */
export const NO_MEMORY: ProjectMemory = Object.freeze({ dependents: [], stubs: [] });
