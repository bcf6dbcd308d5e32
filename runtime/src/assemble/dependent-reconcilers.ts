// Which event source and which writer each dependent of a controller has.
import type { LoopListener } from "../base/activity.js";
import type { KubernetesObject } from "../base/kubernetes-object.js";
import { selectorOf } from "../base/primary-link.js";
import type { ProofKeys } from "../base/proof-key.js";
import type { ApiClient } from "../client/api-client.js";
import type { EventSource } from "../sources/event-source.js";
import type { ControllerSources } from "../sources/controller-sources.js";
import type { DependentSource, DependentWatch } from "../sources/kind/dependent-source.js";
import {
  dependentsOf,
  finalizerNameOf,
  takenManagersOf,
  namesOf,
  type ControllerDefinition,
} from "../reconcile/controller-definition.js";
import { KubernetesReconciler } from "../workflow/dependents/kubernetes-reconciler.js";
import {
  deletionOf,
  isKubernetes,
  type KubernetesDependent,
  type ObjectReference,
} from "../workflow/definition/workflow-definition.js";
import type { OnceMemory } from "../workflow/dependents/once.js";
import { referencedKeyOf, type ReferringDependent } from "../workflow/dependents/referenced-object.js";
import { Sender } from "../write/send/send.js";
import { Writer } from "../write/writer.js";
import type { OwnViews } from "../cache/own-views.js";
import type { EventFilters } from "../cache/resource-change.js";

/** What the reconcilers of dependents are made of. */
export interface ReconcilerParts {
  readonly client: ApiClient;
  /** The clients of the other clusters that dependents live in, by their names. */
  readonly clusters: ReadonlyMap<string, ApiClient>;
  /** The field managers of all controllers and their dependents, whose entries in managed fields are kept. */
  readonly fieldManagers: readonly string[];
  /** Writes as the controller does. */
  readonly writer: Writer;
  readonly sources: ControllerSources;
  readonly views: OwnViews;
  readonly loops: LoopListener;
  /** Where the key is that proves links. */
  readonly proofKey?: ProofKeys | undefined;
  /** Returns what is remembered of the objects of a dependent that are created once. */
  readonly memoryOf?: (dependent: string) => OnceMemory | undefined;
}

/** Makes what finds and writes the objects of a dependent, which are known in a source. */
export type ReconcilerFactory = (dependent: KubernetesDependent, source: DependentSource) => KubernetesReconciler;

/** Returns what makes the reconcilers of a controller; those that write alike share a writer, and what that has learnt. */
export function reconcilerFactory(
  controllerDefinition: ControllerDefinition,
  {
    client: own,
    clusters,
    writer,
    fieldManagers,
    views,
    loops: listener,
    proofKey: proofKeys,
    memoryOf,
  }: ReconcilerParts,
): ReconcilerFactory {
  const { name: controller, formerNames, fieldManager: ofController = controller } = controllerDefinition;
  const finalizer = finalizerNameOf(controllerDefinition);
  const formerFieldManagers = takenManagersOf(controllerDefinition);
  const writers = new Map<string, Writer>();
  const writerOf = (
    { cluster, fieldManager = ofController, serverSideApply = true }: KubernetesDependent,
    { source }: DependentSource,
    client: () => ApiClient,
  ): Writer => {
    // A source of the user may be in a cluster of its own.
    const place = isElsewhere(source) ? source.name : "";
    if (place === "" && fieldManager === ofController && serverSideApply) return writer;
    const key = JSON.stringify([cluster ?? place, cluster === undefined, fieldManager, serverSideApply]);
    let known = writers.get(key);
    if (known === undefined) {
      const sender = new Sender({ client, fieldManager, formerFieldManagers, fieldManagers, listener, views });
      writers.set(key, (known = new Writer(sender, { serverSideApply })));
    }
    return known;
  };
  return (definition, source) => {
    const { name, mode, cluster } = definition;
    if (mode !== "readOnly" && deletionOf(definition) === "garbageCollected" && isElsewhere(source.source))
      throw new Error(
        `dependent "${name}" shares event source "${source.source.name}", which watches another cluster, where the garbage collector ` +
          "knows nothing of its primary; state deletion: ordered, so that the runtime deletes it",
      );
    const client = () => (cluster === undefined ? source.source.client : clusters.get(cluster)) ?? own;
    return new KubernetesReconciler({
      definition,
      source,
      writer: writerOf(definition, source, client),
      client,
      controller,
      formerNames,
      finalizer,
      proofKeys,
      memory: mode === "once" ? memoryOf?.(name) : undefined,
    });
  };
}

// By what it has: a source may come from another copy of this package.
function isElsewhere(source: EventSource): boolean {
  return "connection" in source && source.connection !== undefined;
}

/** Returns the label selector of the watch of a dependent of a controller; undefined if that has none. */
export type SelectorOf = (controller: ControllerDefinition, dependent: KubernetesDependent) => string | undefined;

/**
 * Returns the selectors for the dependents of these controllers: what they write has the label of its controller, and watches of one place
 * select the labels of all controllers that write there, so that they are one watch. What others write is selected as the user says.
 */
export function shareSelectors(controllers: readonly ControllerDefinition[]): SelectorOf {
  const writers = new Map<string, string[]>();
  for (const controller of controllers)
    for (const dependent of dependentsOf(controller).filter(isKubernetes)) {
      const place = placeOf(controller, dependent);
      if (place !== undefined) writers.set(place, [...(writers.get(place) ?? []), ...namesOf(controller)]);
    }
  return (controller, dependent) => {
    const place = placeOf(controller, dependent);
    const { labelSelector } = dependent;
    return place === undefined ? labelSelector : selectorOf(writers.get(place) ?? namesOf(controller), labelSelector);
  };
}

// What is watched for objects of the controller alone; undefined if others' objects are needed as well.
function placeOf(controller: ControllerDefinition, dependent: KubernetesDependent): string | undefined {
  const { name, resource, cluster, namespace, labelSelector, fieldSelector, mode, eventSource, operations } = dependent;
  const isRead = (each: KubernetesDependent) => each.mode === "readOnly" && each.eventSource === name;
  if (mode === "readOnly" || eventSource !== undefined) return undefined;
  // An object that somebody else creates has no label until it is updated.
  if (operations?.create !== undefined) return undefined;
  if (dependentsOf(controller).filter(isKubernetes).some(isRead)) return undefined;
  const namespaces = namespace === undefined ? controller.namespaces : [namespace];
  return JSON.stringify([resource.apiVersion, resource.kind, cluster, namespaces, labelSelector, fieldSelector]);
}

/** Returns what a controller watches of a dependent. */
export function watchOf(
  { filters, cluster, mode, labelSelector: _stated, ...dependent }: KubernetesDependent,
  clusters: ReconcilerParts["clusters"],
  labelSelector: string | undefined,
): DependentWatch {
  const { ref, fieldSelector } = dependent;
  const named = typeof ref?.name === "string" ? `metadata.name=${escapeValue(ref.name)}` : undefined;
  const selected = [fieldSelector, named].filter((each) => each !== undefined).join(",");
  return {
    ...dependent,
    labelSelector,
    ...(selected === "" ? {} : { fieldSelector: selected }),
    ...(ref === undefined ? {} : referenceOf(dependent, ref)),
    connection: cluster === undefined ? undefined : clusters.get(cluster)!.connection,
    isActivatedLater: dependent.activationCondition !== undefined,
    isReadOnly: mode === "readOnly",
    // The filters of a dependent take objects of its kind.
    filters: filters as EventFilters | undefined,
  };
}

// As EscapeValue of apimachinery does: a name of the user's must not become several terms of a selector.
function escapeValue(text: string): string {
  return text.replace(/[\\,=]/g, "\\$&");
}

// Who mentions an object is known of all primaries; the objects that nobody mentions cost memory, and no event.
function referenceOf(
  dependent: ReferringDependent,
  { namespace }: ObjectReference,
): Pick<DependentWatch, "namespaces" | "primaryToSecondary"> {
  const primaryToSecondary = (primary: KubernetesObject) => {
    const key = referencedKeyOf(dependent, primary);
    return key === undefined ? [] : [key];
  };
  if (namespace === undefined) return { primaryToSecondary };
  return { primaryToSecondary, namespaces: typeof namespace === "string" ? [namespace] : "all" };
}
