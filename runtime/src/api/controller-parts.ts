// Types of the parts that an operator and its controllers are wired from.
import type { ForeignWrites, LoopReporter } from "../apply/competing-writers.js";
import type { Writer } from "../apply/writer.js";
import type { LoopEvent, Tracing } from "../base/activity.js";
import type { Logger } from "../base/logger.js";
import type { OwnViews, ResourceView } from "../cache/resource-view.js";
import type { ApiClient } from "../client/api-client.js";
import type { ExternalWriteEvent } from "../dependents/external-reconciler.js";
import type { EventRecorder } from "../operate/event-recorder.js";
import type { LinkProofs, ProofKeySecret } from "../operate/proof-key-secret.js";
import type { Controller, ReconcileEvent } from "../queue/controller.js";
import type { Suspects } from "../queue/work-queue.js";
import type { Sweeper } from "../reconcile/cleanup.js";
import type { ControllerDefinition } from "../reconcile/controller-definition.js";
import type { StalledPrimaries, StuckPrimaries } from "../reconcile/primary-events.js";
import type { PrimaryReconciler } from "../reconcile/primary-reconciler.js";
import type { ExpectationRegistry } from "../reconcile/reconcile-context.js";
import type { ControllerSources } from "../sources/controller-sources.js";
import type { SharedInformers } from "../watch/shared-informers.js";
import type { KubernetesDependent } from "../workflow/workflow-definition.js";
import type { ExternalDependents } from "./external-dependents.js";

/** Receives the events of the controllers of an operator, for metrics, tracing and user callbacks. Its functions must not throw. */
export interface OperatorObserver {
  onReconcile?(event: ReconcileEvent): void;
  /** Called for each write that is part of a write loop. */
  onLoop?(event: LoopEvent): void;
  /** Called for each write by another process that uses a field manager of the controller. */
  onForeignWrite?(write: { readonly controller: string }): void;
  onExternalWrite?(event: ExternalWriteEvent): void;
}

/** State that the controllers of an operator share, from one start to the following stop. */
export interface OperatorContext {
  readonly client: ApiClient;
  /** The clients of the other clusters that dependents live in, by the name of the cluster. */
  readonly clusters: ReadonlyMap<string, ApiClient>;
  /** The field managers of all controllers and their dependents. Caches keep only the `managedFields` entries of these managers. */
  readonly fieldManagers: readonly string[];
  readonly informers: SharedInformers;
  readonly logger: Logger;
  readonly events: EventRecorder;
  readonly tracing?: Tracing | undefined;
  /** The primaries that blocked the event loop. They are reconciled after all others. */
  readonly suspects: Suspects;
  /** The Secret with the key that signs values which controllers store where other clients can write. */
  readonly proofKey: ProofKeySecret;
  /** Returns the label selector of the watch of a dependent, or undefined if the watch has none. */
  selectorOf(controller: ControllerDefinition, dependent: KubernetesDependent): string | undefined;
  /** Returns the number of the leadership term of this replica. Absent without leader election. */
  readonly fencingToken?: (() => number | undefined) | undefined;
  readonly observers: readonly OperatorObserver[];
}

/** The parts of a controller that are needed to watch and write its dependents. */
export interface DependentParts {
  readonly definition: ControllerDefinition;
  readonly operator: OperatorContext;
  readonly views: OwnViews;
  readonly primaries: ResourceView;
  readonly sources: ControllerSources;
  readonly externals: ExternalDependents;
  /** Writes as the field manager of the controller. */
  readonly writer: Writer;
  readonly loops: LoopReporter;
  readonly proofs: LinkProofs;
}

/** The parts of a running controller, without those that clean up after primaries that no reconcile cleans up. */
export interface ControllerCore extends DependentParts {
  /** Aborted when the controller has to stop. */
  readonly stopping: AbortController;
  /** Returns whether this replica leads and has loaded everything that a reconcile needs. */
  isPrepared(): boolean;
  /** The finalizer that is added to primaries. Absent if the controller needs none. */
  readonly finalizer: string | undefined;
  readonly expectations: ExpectationRegistry;
  readonly runner: PrimaryReconciler;
  readonly stalled: StalledPrimaries;
  readonly controller: Controller;
  readonly foreignWrites: ForeignWrites;
}

export interface ControllerParts extends ControllerCore {
  readonly sweepers: Sweepers;
  /** Reports primaries whose deletion is blocked, and deleted primaries whose objects remain. */
  readonly stuck: StuckPrimaries;
}

/**
 * `deleted`: cleans up after primaries that were deleted without a finalizer. `unselected`: cleans up after primaries that no longer match the
 * selector of the controller.
 */
export type SweepName = "deleted" | "unselected";

export type Sweepers = { readonly [Name in SweepName]?: Sweeper };
