// What the manifest remembers of the last generation: a dependent that leaves a spec may have objects that run.
import type { UntypedKindSpec } from "../read/workflow-spec.js";

/** A dependent that an operator may have run with. */
export interface RememberedDependent {
  readonly controller: string;
  readonly name: string;
  /** Its kind as specs state it; `external` if it is none of Kubernetes. */
  readonly resource: string | UntypedKindSpec;
  readonly isReadOnly?: true;
  readonly namespace?: string;
  readonly cluster?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  /** What became of its objects when they had to go. Default: garbageCollected */
  readonly deletion?: "ordered" | "orphan";
  /** Where the ids of external resources are kept. */
  readonly state?: string;
}

/** A controller of the last generation. */
export interface RememberedController {
  readonly name: string;
  /** The kind of its primary: `example.com/v1/WebPage`. */
  readonly primary: string;
}

/** What is known of the last generation. */
export interface ProjectMemory {
  readonly dependents: readonly RememberedDependent[];
  /** Default: none. Manifests of earlier generators do not record them. */
  readonly controllers?: readonly RememberedController[];
  /** Without a manifest: the stubs that are there, by the folder of their controller. They say which dependents there were. */
  readonly stubs: readonly StubWitness[];
  /** Whether a run was cut off, so that dependents of two generations are remembered. */
  readonly isUnfinished?: boolean;
}

/** A file of the user's that was the stub of a dependent: `src/webpage/dependents/web-server.ts`. */
export interface StubWitness {
  /** `webpage` */
  readonly folder: string;
  /** `web-server` */
  readonly name: string;
  readonly file: string;
}

/** The kind of an external dependent, in the place of a kind of Kubernetes. */
export const EXTERNAL = "external";

/** Nothing is known of a last generation. */
export const NO_MEMORY: ProjectMemory = Object.freeze({ dependents: [], stubs: [] });
