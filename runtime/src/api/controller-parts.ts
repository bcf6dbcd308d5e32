// The records that connect an operator, its controllers and the parts of each controller. Types only.
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

/** Receives what the controllers of an operator do. Its functions must not throw. */
export interface OperatorObserver {
  onReconcile(event: ReconcileEvent): void;
  /** Called for every write of a write loop. */
  onLoop(event: LoopEvent): void;
  /** Called for every write that another process sent under a field manager of a controller. */
  onForeignWrite(write: { readonly controller: string }): void;
  onExternalWrite(event: ExternalWriteEvent): void;
}

/** What the controllers of an operator share, from one start to one stop. */
export interface OperatorContext {
  readonly client: ApiClient;
  /** The clients of the other clusters that dependents live in, by the names of the clusters. */
  readonly clusters: ReadonlyMap<string, ApiClient>;
  /** The field managers of all controllers and their dependents. Caches keep only their entries in managed fields. */
  readonly fieldManagers: readonly string[];
  readonly informers: SharedInformers;
  readonly logger: Logger;
  readonly events: EventRecorder;
  readonly tracing?: Tracing | undefined;
  /** The primaries that blocked the event loop, which are reconciled last. */
  readonly suspects: Suspects;
  /** The key that signs what controllers store where other clients can write. */
  readonly proofKey: ProofKeySecret;
  /** Returns the label selector of the watch of a dependent; undefined if it has none. */
  selectorOf(controller: ControllerDefinition, dependent: KubernetesDependent): string | undefined;
  /** Returns the number of the term in which this replica leads; absent without leader election. */
  readonly fencingToken?: (() => number | undefined) | undefined;
  readonly observer: OperatorObserver;
}

/** The parts of a controller that its dependents are watched and written with. */
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

/** The parts of a running controller but for those that look after primaries which no reconcile cleans up. */
export interface ControllerCore extends DependentParts {
  /** Aborted when the controller is to stop. */
  readonly stopping: AbortController;
  /** Tells whether this replica leads, and has what it needs to reconcile. */
  isPrepared(): boolean;
  /** The finalizer that primaries may get; absent if the controller needs none. */
  readonly finalizer: string | undefined;
  readonly expectations: ExpectationRegistry;
  readonly runner: PrimaryReconciler;
  readonly stalled: StalledPrimaries;
  readonly controller: Controller;
  readonly foreignWrites: ForeignWrites;
}

export interface ControllerParts extends ControllerCore {
  readonly sweepers: Sweepers;
  /** Reports primaries whose deletion is blocked, or that left objects behind. */
  readonly stuck: StuckPrimaries;
}

/** `deleted`: cleanup without a finalizer. `unselected`: cleanup of primaries that the selector of the controller excludes. */
export type SweepName = "deleted" | "unselected";

export type Sweepers = { readonly [Name in SweepName]?: Sweeper };
