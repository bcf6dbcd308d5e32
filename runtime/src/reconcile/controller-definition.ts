// The definition of a controller: what generated code and users set, and what follows from it for every reconcile.
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

/** What is known of a controller when its event sources are made. */
export type EventSourceFacts = Pick<EventSourceContext, "controller" | "fieldManager" | "namespaces" | "primary">;

/** Everything about one controller: its workflow, the user's reconciler and the settings; generated from the spec. */
export interface ControllerDefinition extends ScheduleSettings {
  /** Names the controller in logs, and is the default of `fieldManager`. */
  readonly name: string;
  /**
   * Names that the controller had in earlier versions. Objects, kept ids and managed fields that were written under them are its own.
   *
   * @example formerNames: ["web-page"]
   */
  readonly formerNames?: readonly string[];
  readonly workflow: WorkflowDefinition;
  /**
   * Workflows of the same primaries that run when the reconciler says so, by `context.workflows.get(name)`; a dependent on its own is a
   * workflow of one. What they consist of is watched like the dependents of `workflow`, and no two have one name.
   */
  readonly workflows?: { readonly [name: string]: WorkflowDefinition };
  readonly reconciler?: Reconciler<never, never, object, object>;
  /** Creates the controller's additional event sources. Called once per start. Default: none */
  readonly eventSources?: (facts: EventSourceFacts) => readonly EventSource[];
  /** The namespaces to watch; `current` is the one of the connection. Default: `all` */
  readonly namespaces?: "all" | "current" | readonly string[] | undefined;
  /**
   * What becomes of the others if a kind cannot be watched in some namespace or cluster, for example because the role of the operator there
   * was deleted. With `isolate` only the primaries wait that may have objects there. With `block` the controller does not start before all of
   * its watches have begun, and `setNamespaces` throws. Default: `isolate`, so that one namespace does not stop the others
   *
   * @example defineController({ name: "webpage", workflow, namespaces: ["a", "b"], watchFailurePolicy: "block" })
   */
  readonly watchFailurePolicy?: "isolate" | "block" | undefined;
  /** Limits the controller to primaries with these labels. */
  readonly labelSelector?: string;
  /** Limits the controller to primaries with these fields, of those that the API server can select by. */
  readonly fieldSelector?: string;
  /**
   * The field manager of its writes. Default: the name of the controller
   *
   * @example fieldManager: "web-page-operator"
   */
  readonly fieldManager?: string;
  /**
   * Field managers of the operator that this one replaces. What they own on the objects of the dependents becomes the controller's own, so that
   * what `desired` does not state is removed: fields, labels, annotations, finalizers and owner references. Objects are looked at in each
   * reconcile, also those that were adopted before. `gen-operator doctor --takeover` lists what would go. Default: none, so that nothing goes
   * that `desired` does not state
   *
   * @example formerFieldManagers: ["web-operator", "kubectl-client-side-apply"]
   */
  readonly formerFieldManagers?: readonly string[] | undefined;
  /**
   * The finalizer of the primaries. A name without a slash is only accepted for custom resources, with a warning, as another client may use the same
   * one. Default: `<plural>.<group>/finalizer`
   *
   * @example finalizer: "webpages.example.com/pages"
   */
  readonly finalizer?: string;
  /**
   * Finalizers that an earlier version of the operator, or the operator that this one replaces, put on the primaries. They are
   * removed after the cleanup of a deleted primary, and after a reconcile in which every dependent was ready. Default: none, because a finalizer
   * may only be removed if no other controller needs it
   *
   * @example formerFinalizers: ["deletion.finalizers.rabbitmqclusters.rabbitmq.com"]
   */
  readonly formerFinalizers?: readonly string[] | undefined;
  /**
   * How objects are cleaned up that the garbage collector does not delete. `finalizer`: before their primary is deleted, which waits for the
   * operator. `sweep`: after it, so that a primary is always deleted at once; what was left while the operator was away is deleted at its next
   * start, once a GET of the primary answers 404, or with another uid. After a restart nothing is known of such a primary but its name, namespace
   * and uid, so external dependents with `delete`, `cleanup` of the reconciler, own `delete` functions and `heldForCleanup` need the finalizer.
   * Default: `finalizer`, since a cleanup then has all that it reads
   *
   * @example defineController({ name: "mirror", workflow, cleanupPolicy: "sweep" })
   */
  readonly cleanupPolicy?: "finalizer" | "sweep" | undefined;
  /**
   * Whether this controller cleans up primaries that are being deleted, have its finalizer and do not match its selector. Only one
   * instance may be responsible for them: where instances share the finalizer and select different primaries (shards), the others would clean up
   * what is theirs. Needs a selector. Default: false, since another instance may select them; they are reported
   *
   * @example defineController({ name: "webpage", workflow, labelSelector: "!paused", cleanUpUnselected: true })
   */
  readonly cleanUpUnselected?: boolean | undefined;
  /**
   * After how long a primary that is being deleted is released although its cleanup has not succeeded: its finalizer is removed, and a log line
   * and an Event name what may be left. Default: never, since what is left costs money or holds data, and nothing finds it again
   *
   * @example cleanupTimeoutMs: 3_600_000
   */
  readonly cleanupTimeoutMs?: number;
  /**
   * After how long an Event `Stalled` says what a primary waits for that has not become ready, or has not been cleaned up; 0 for never. Raise it
   * if that takes longer as a rule, as for a database that is restored. Default: 600,000 (10 minutes), so that nothing hangs silently
   *
   * @example stalledAfterMs: 3_600_000
   */
  readonly stalledAfterMs?: number;
  /**
   * Whether the runtime keeps conditions in the status of the primaries: `Ready`, and one for each dependent that is not; false unless
   * given. They are written as a field manager of their own, beside what the reconciler writes.
   */
  readonly statusConditions?: "managed" | undefined;
  /**
   * What the types of these conditions begin with: with `Backup`, `BackupReady` stands for `Ready`. For a controller beside another one of the same
   * kind, in this operator or another one, as both would write `Ready` in turns. Default: nothing
   *
   * @example conditionPrefix: "Backup"
   */
  readonly conditionPrefix?: string | undefined;
  /** Whether primaries are written by server-side apply. False: by JSON patches of what changed. Default: true */
  readonly serverSideApply?: boolean;
  /** Finds primaries by the values that these functions return, through `context.primaries.byIndex`. */
  readonly indexes?: { readonly [name: string]: PrimaryIndexFunction };
}

/** Returns the values under which an index finds a primary. */
export type PrimaryIndexFunction<Primary = never> = (primary: Primary) => ReturnType<IndexFunction>;

/** Returns the name of a controller, and the names that it had in earlier versions. */
export function namesOf({
  name,
  formerNames = [],
}: Pick<ControllerDefinition, "name" | "formerNames">): readonly string[] {
  return [name, ...formerNames];
}

/** Returns the field managers of earlier versions: those of former names, unless one field manager is stated for all names. */
export function formerManagersOf({ formerNames = [], fieldManager }: ControllerDefinition): readonly string[] {
  return fieldManager === undefined ? formerNames : [];
}

/** The field managers of a controller, and of its former names. */
export interface ManagerNames {
  readonly own: string;
  readonly former: readonly string[];
  /** Those that apply the conditions in the status; absent if the controller keeps none. */
  readonly conditions?: { readonly own: string; readonly former: readonly string[] };
}

/** Returns the field managers that write primaries. */
export function managersOf(definition: ControllerDefinition): ManagerNames {
  const { name, fieldManager: own = name, statusConditions } = definition;
  const former = formerManagersOf(definition);
  if (statusConditions !== "managed") return { own, former };
  return { own, former, conditions: { own: conditionsManagerOf(own), former: former.map(conditionsManagerOf) } };
}

/** Returns the field manager that applies conditions where the reconciler returns no status. */
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

/** Returns the field managers whose fields on the objects of dependents are the controller's: of its earlier versions, and of the operator that it replaces. */
export function takenManagersOf(definition: ControllerDefinition): readonly string[] {
  return [...new Set([...formerManagersOf(definition), ...(definition.formerFieldManagers ?? [])])];
}

/** Returns the dependents of all workflows of a controller, those of its own first. */
export function dependentsOf({ workflow, workflows = {} }: ControllerDefinition): readonly DependentDefinition[] {
  return [workflow, ...Object.values(workflows)].flatMap(({ dependents }) => dependents);
}

/** Returns the finalizer that a controller puts on objects of a kind, as JOSDK names it. */
export function defaultFinalizerOf({ plural, group }: ResourceDefinition): string {
  // Finalizers have to be qualified by a domain, which the core group and groups without a dot are not.
  const qualified = group === "" ? plural : `${plural}.${group}`;
  return qualified.includes(".") ? `${qualified}/finalizer` : `${qualified}.gen-operator.dev/finalizer`;
}

/** Returns the finalizer that primaries of a controller may get; undefined if it needs none. */
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

/** Returns the name of the finalizer of a controller, whether or not it needs one. */
export function finalizerNameOf({ finalizer, workflow }: ControllerDefinition): string {
  return finalizer ?? defaultFinalizerOf(workflow.primary);
}

/** Returns the types of the conditions that the runtime keeps for a controller, if it keeps any; those of former names of dependents are over. */
export function keptConditionsOf({ workflow, conditionPrefix }: ControllerDefinition): ConditionTypes {
  const names = workflow.dependents.flatMap(({ name, movedFrom = [] }) => [name, ...movedFrom]);
  return conditionTypesOf(names, conditionPrefix);
}

/** The finalizer of a controller, and when primaries have it. */
export interface PrimaryFinalizer {
  readonly name: string;
  /** Finalizers of earlier versions, and of the operator that this one replaces. */
  readonly former: readonly string[];
  /** Whether primaries may get it. */
  readonly isUsed: boolean;
  /** Whether each primary has it: only the reconciler knows what its cleanup() is for. */
  readonly isAlways: boolean;
  /** Whether it is removed from a primary that lives, once nothing needs it. */
  readonly isReleased: boolean;
}

/** What follows from a definition for every reconcile. */
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

/** Returns those of the finalizers of an object that are the controller's, its former ones included. */
export function ownFinalizersOn({ name, former }: PrimaryFinalizer, { metadata }: KubernetesObject): readonly string[] {
  return metadata.finalizers?.filter((each) => each === name || former.includes(each)) ?? [];
}
