// The definition of a controller, as set by generated code and users, and values derived from it for every reconcile.
import type { KubernetesObject, ResourceDefinition } from "../base/kubernetes-object.js";
import type { IndexFunction } from "../cache/resource-cache.js";
import type { ScheduleSettings } from "../queue/schedule-settings.js";
import type { EventSource, EventSourceContext } from "../sources/event-source.js";
import {
  type DependentDefinition,
  type RemovedDependent,
  type WorkflowDefinition,
  isHeldForCleanup,
  isKubernetes,
  needsCleanup,
} from "../workflow/workflow-definition.js";
import type { Reconciler } from "./reconciler.js";
import { type ConditionTypes, conditionTypesOf } from "./status-conditions.js";

/** What is known about a controller when its event sources are created. */
export type EventSourceFacts = Pick<EventSourceContext, "controller" | "fieldManager" | "namespaces" | "primary">;

/** The definition of a controller, generated from the spec: its workflow, the user's reconciler, and its settings. */
export interface ControllerDefinition extends ScheduleSettings {
  /** The name of the controller in logs. Also the default of `fieldManager`. */
  readonly name: string;
  /**
   * Names of the controller in earlier versions. Objects, stored external IDs, and managed fields written under these names belong to it.
   *
   * @example formerNames: ["web-page"]
   */
  readonly formerNames?: readonly string[];
  readonly workflow: WorkflowDefinition;
  /**
   * Additional workflows of the same primaries. They run when the reconciler invokes them through `context.workflows.get(name)`; a standalone
   * dependent is a workflow with a single dependent. Their kinds are watched like those of `workflow`, and dependent names must be unique across all
   * workflows.
   */
  readonly workflows?: { readonly [name: string]: WorkflowDefinition };
  readonly reconciler?: Reconciler<never, never, object, object>;
  /** Creates additional event sources of the controller. Called once per start. Default: none */
  readonly eventSources?: (facts: EventSourceFacts) => readonly EventSource[];
  /** The namespaces to watch; `current` is the namespace of the connection. Default: `all` */
  readonly namespaces?: "all" | "current" | readonly string[] | undefined;
  /**
   * What to do if a kind cannot be watched in some namespace or cluster, for example because the operator's Role there was deleted. With `isolate`,
   * only primaries that may have objects there wait. With `block`, the controller does not start before all of its watches have synced, and
   * `setNamespaces` throws. Default: `isolate`, so that one namespace does not stop the others
   *
   * @example defineController({ name: "webpage", workflow, namespaces: ["a", "b"], watchFailurePolicy: "block" })
   */
  readonly watchFailurePolicy?: "isolate" | "block" | undefined;
  /** A label selector for primaries. */
  readonly labelSelector?: string;
  /** A field selector for primaries; the API server supports only some fields. */
  readonly fieldSelector?: string;
  /**
   * The field manager of the controller's writes. Default: the name of the controller
   *
   * @example fieldManager: "web-page-operator"
   */
  readonly fieldManager?: string;
  /**
   * Field managers of the operator that this one replaces. The controller takes over the fields that they own on objects of dependents, and removes
   * those that `desired` does not set: fields, labels, annotations, finalizers, and owner references. Every reconcile checks the objects, including
   * those adopted earlier. `gen-operator doctor --takeover` lists what would be removed. Default: none, so that nothing is removed
   *
   * @example formerFieldManagers: ["web-operator", "kubectl-client-side-apply"]
   */
  readonly formerFieldManagers?: readonly string[] | undefined;
  /**
   * The finalizer of the primaries. A name without a slash is only accepted for custom resources, and with a warning, because another client may use
   * the same one. Default: `<plural>.<group>/finalizer`
   *
   * @example finalizer: "webpages.example.com/pages"
   */
  readonly finalizer?: string;
  /**
   * Finalizers that an earlier version of the operator, or the operator that this one replaces, has added to the primaries. They are removed after
   * the cleanup of a deleted primary, and after a reconcile in which every dependent was ready. Default: none, because a finalizer may only be
   * removed if no other controller needs it
   *
   * @example formerFinalizers: ["deletion.finalizers.rabbitmqclusters.rabbitmq.com"]
   */
  readonly formerFinalizers?: readonly string[] | undefined;
  /**
   * How objects that the garbage collector does not delete are cleaned up. `finalizer`: before the deletion of their primary completes; the deletion
   * waits for the operator. `sweep`: afterwards, so that deletions never wait; objects that remained while the operator was down are deleted at its
   * next start, after a GET of the primary has returned 404 or another UID. After a restart, only the name, namespace, and UID of a deleted primary
   * are known, so external dependents with `delete`, a `cleanup` function of the reconciler, custom `delete` functions, and `heldForCleanup` require
   * the finalizer. Default: `finalizer`, because the cleanup can then read the primary
   *
   * @example defineController({ name: "mirror", workflow, cleanupPolicy: "sweep" })
   */
  readonly cleanupPolicy?: "finalizer" | "sweep" | undefined;
  /**
   * Whether this controller cleans up terminating primaries that have its finalizer but do not match its selector. Enable this in a single instance:
   * where instances share the finalizer and select different primaries (shards), the others would clean up primaries of that instance. Requires a
   * selector. Default: false, because another instance may select them; they are reported
   *
   * @example defineController({ name: "webpage", workflow, labelSelector: "!paused", cleanUpUnselected: true })
   */
  readonly cleanUpUnselected?: boolean | undefined;
  /**
   * The time in milliseconds after which a terminating primary is released although its cleanup has not succeeded: its finalizer is removed, and a
   * log line and an Event list what may remain. Default: never, because remaining objects may cost money or hold data, and no client finds them again
   *
   * @example cleanupTimeoutMs: 3_600_000
   */
  readonly cleanupTimeoutMs?: number;
  /**
   * The time in milliseconds after which a `Stalled` Event reports what a primary waits for that has not become ready, or has not been cleaned up; 0
   * to disable. Increase it if that usually takes longer, for example to restore a database. Default: 600,000 (10 minutes), so that no primary hangs
   * silently
   *
   * @example stalledAfterMs: 3_600_000
   */
  readonly stalledAfterMs?: number;
  /**
   * Whether the runtime manages conditions in the status of the primaries: `Ready`, and one for each dependent that is not ready. If the reconciler
   * returns a status, they are written together with it; otherwise a separate field manager applies them. Default: no conditions
   */
  readonly statusConditions?: "managed" | undefined;
  /**
   * A prefix for the types of these conditions: with `Backup`, `Ready` becomes `BackupReady`. Required if another controller, in this or another
   * operator, reconciles the same kind, because both would overwrite `Ready`. Default: none
   *
   * @example conditionPrefix: "Backup"
   */
  readonly conditionPrefix?: string | undefined;
  /** Whether primaries are written by server-side apply. If false, they are written by JSON patches of the changes. Default: true */
  readonly serverSideApply?: boolean;
  /** Index functions for `context.primaries.byIndex`, by the name of the index. */
  readonly indexes?: { readonly [name: string]: PrimaryIndexFunction };
}

/** Returns the index values of a primary. */
export type PrimaryIndexFunction<Primary = never> = (primary: Primary) => ReturnType<IndexFunction>;

/** Returns the current name of a controller, followed by its former names. */
export function namesOf({
  name,
  formerNames = [],
}: Pick<ControllerDefinition, "name" | "formerNames">): readonly string[] {
  return [name, ...formerNames];
}

/** Returns the field managers of earlier versions: the former names, unless `fieldManager` is set, which then applied to all names. */
export function formerManagersOf({ formerNames = [], fieldManager }: ControllerDefinition): readonly string[] {
  return fieldManager === undefined ? formerNames : [];
}

/** Field managers of a controller under its current and former names. */
export interface ManagerNames {
  readonly own: string;
  readonly former: readonly string[];
  /** Field managers that apply the conditions; absent if the controller manages none. */
  readonly conditions?: { readonly own: string; readonly former: readonly string[] };
}

/** Returns the field managers that write primaries. */
export function managersOf(definition: ControllerDefinition): ManagerNames {
  const { name, fieldManager: own = name, statusConditions } = definition;
  const former = formerManagersOf(definition);
  if (statusConditions !== "managed") return { own, former };
  return { own, former, conditions: { own: conditionsManagerOf(own), former: former.map(conditionsManagerOf) } };
}

/** Returns the field manager that applies conditions if the reconciler returns no status. */
export function conditionsManagerOf(fieldManager: string): string {
  return `${fieldManager}-conditions`;
}

/** Returns all field managers of a controller and its dependents. */
export function fieldManagersOf(definition: ControllerDefinition): readonly string[] {
  const { own, conditions } = managersOf(definition);
  const ofConditions = conditions === undefined ? [] : [conditions.own, ...conditions.former];
  const ofDependents = dependentsOf(definition)
    .filter(isKubernetes)
    .flatMap((each) => each.fieldManager ?? []);
  return [...new Set([own, ...ofConditions, ...ofDependents])];
}

/**
 * Returns the field managers whose fields on dependents the controller takes over: those of its earlier versions, and of the operator that it
 * replaces.
 */
export function takenManagersOf(definition: ControllerDefinition): readonly string[] {
  return [...new Set([...formerManagersOf(definition), ...(definition.formerFieldManagers ?? [])])];
}

/** Returns the dependents of all workflows of a controller, starting with its own workflow. */
export function dependentsOf({ workflow, workflows = {} }: ControllerDefinition): readonly DependentDefinition[] {
  return [workflow, ...Object.values(workflows)].flatMap(({ dependents }) => dependents);
}

/** Returns the default finalizer for a kind, named as in JOSDK. */
export function defaultFinalizerOf({ plural, group }: ResourceDefinition): string {
  // Finalizers must be qualified with a domain. The core group and groups without a dot are not domains.
  const qualified = group === "" ? plural : `${plural}.${group}`;
  return qualified.includes(".") ? `${qualified}/finalizer` : `${qualified}.gen-operator.dev/finalizer`;
}

/** Returns the finalizer that the controller adds to primaries; undefined if it needs none. */
export function finalizerOf(definition: ControllerDefinition): string | undefined {
  const { workflow, reconciler, onAllEvents = false, cleanupPolicy } = definition;
  if (onAllEvents || cleanupPolicy === "sweep") return undefined;
  const cleansUp =
    reconciler?.cleanup !== undefined ||
    workflow.dependents.some(needsCleanup) ||
    dependentsOf(definition).some(isHeldForCleanup) ||
    Object.values(workflow.removed ?? {}).some(({ deletion }) => deletion === "orphan");
  return cleansUp ? finalizerNameOf(definition) : undefined;
}

/** Returns the name of a controller's finalizer, even if it needs none. */
export function finalizerNameOf({ finalizer, workflow }: ControllerDefinition): string {
  return finalizer ?? defaultFinalizerOf(workflow.primary);
}

/** Returns the condition types that the runtime may have written for a controller, including those of former names of dependents. */
export function keptConditionsOf({ workflow, conditionPrefix }: ControllerDefinition): ConditionTypes {
  const names = workflow.dependents.flatMap(({ name, movedFrom = [] }) => [name, ...movedFrom]);
  return conditionTypesOf(names, conditionPrefix);
}

/** The finalizer of a controller, and which primaries have it. */
export interface PrimaryFinalizer {
  readonly name: string;
  /** Finalizers of earlier versions, and of the operator that this one replaces. */
  readonly former: readonly string[];
  /** Whether primaries may get it. */
  readonly isUsed: boolean;
  /** Whether every primary gets it: the reconciler has a cleanup() function, whose purpose the runtime does not know. */
  readonly isAlways: boolean;
  /** Whether it is removed from a primary that is not being deleted, once nothing needs it. */
  readonly isReleased: boolean;
}

/** Values derived from a definition, for every reconcile. */
export interface ResolvedDefinition {
  readonly finalizer: PrimaryFinalizer;
  /** The dependents of all workflows. */
  readonly dependents: readonly DependentDefinition[];
  readonly conditionTypes: ConditionTypes;
  readonly serverSideApply: boolean;
  readonly onAllEvents: boolean;
}

/** Applies the defaults of a definition, once for all reconciles of its controller. */
export function resolveDefinition(definition: ControllerDefinition): ResolvedDefinition {
  const { serverSideApply = true, onAllEvents = false } = definition;
  return {
    finalizer: finalizerSettingsOf(definition),
    dependents: dependentsOf(definition),
    conditionTypes: keptConditionsOf(definition),
    ...{ serverSideApply, onAllEvents },
  };
}

function finalizerSettingsOf(definition: ControllerDefinition): PrimaryFinalizer {
  const { workflow, reconciler, onAllEvents = false, cleanupPolicy, formerFinalizers = [] } = definition;
  const isUsed = finalizerOf(definition) !== undefined;
  const isAlways = reconciler?.cleanup !== undefined;
  const isOrdered = ({ deletion }: RemovedDependent) => deletion === "ordered";
  const isReleasable = cleanupPolicy === "sweep" || isUsed || Object.values(workflow.removed ?? {}).some(isOrdered);
  const isReleased = !onAllEvents && !isAlways && isReleasable;
  return { name: finalizerNameOf(definition), former: formerFinalizers, isUsed, isAlways, isReleased };
}

/** Returns the finalizers of an object that belong to the controller, including its former ones. */
export function ownFinalizersOn({ name, former }: PrimaryFinalizer, { metadata }: KubernetesObject): readonly string[] {
  return metadata.finalizers?.filter((each) => each === name || former.includes(each)) ?? [];
}
