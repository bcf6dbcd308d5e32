// What the external dependents of one controller are made of: what is to be known of each, and where the ids of its resources are kept.
import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import { labelValueOf, OWNER_INDEX } from "../base/primary-link.js";
import { kindNameOf, type ResourceDefinition } from "../base/resource-definition.js";
import { messageOf } from "../base/logger.js";
import type { ApiClient } from "../client/api-client.js";
import type { EventSource } from "../sources/event-source.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { ExternalOrigin, ExternalWatch } from "../sources/external/external-watch.js";
import type { FetchContext } from "../sources/external/external-source.js";
import { KindSource } from "../sources/kind/kind-source.js";
import { dependentsOf, type ControllerDefinition } from "../reconcile/controller-definition.js";
import {
  ExternalDriver,
  type ExternalResources,
  type ReleasedResource,
} from "../workflow/dependents/external-driver.js";
import { createStatusState, RememberedState, type ExternalStateStore } from "../workflow/dependents/external-state.js";
import { ObjectStateStore, STATE_LABEL } from "../workflow/dependents/object-state.js";
import { isKubernetes, type ExternalDependent, type ObjectState } from "../workflow/definition/workflow-definition.js";
import { writeEvent } from "../operate/kubernetes-event.js";
import { KindOperations } from "../write/kind-operations.js";
import { Sender } from "../write/send/send.js";

/** What states are written with. */
export interface ExternalParts {
  readonly client: ApiClient;
  /** Who writes. */
  readonly fieldManager: string;
  /** All controllers of the operator: they share what the answers bring. */
  readonly fieldManagers: readonly string[];
  /** What the controller sees of its primaries. */
  readonly primaries: ResourceView;
}

/** The name of the event source of the objects that keep ids, by their kind if they are no ConfigMaps. */
export const STATE_SOURCE = "external-state";

const CORE = { group: "", version: "v1", scope: "Namespaced", apiVersion: "v1", schema: {} } as const;
const FLAGS = { hasStatusSubresource: false, isCustom: false } as const;
const CONFIG_MAP: ResourceDefinition = { ...CORE, ...FLAGS, kind: "ConfigMap", plural: "configmaps" };
const SECRET: ResourceDefinition = { ...CORE, ...FLAGS, kind: "Secret", plural: "secrets" };

const NO_STATE: ReadonlyMap<string, string> = new Map<string, string>();

/** The external dependents of one controller. */
export class ExternalDependents {
  /** What is to be known of each, in their order. */
  readonly watches: readonly ExternalWatch[];
  /** What has to be known besides: the objects that keep ids. */
  readonly sources: readonly EventSource[];
  readonly #definition: ControllerDefinition;
  readonly #parts: ExternalParts;
  readonly #label: string;
  /** What knows the objects that keep ids, by their kind. */
  readonly #stateViews = new Map<string, KindSource>();
  readonly #stores = new Map<string, RememberedState>();

  constructor(definition: ControllerDefinition, parts: ExternalParts) {
    this.#definition = definition;
    this.#parts = parts;
    this.#label = labelValueOf(definition.name);
    const externals = externalsOf(definition);
    for (const each of externals) {
      const store = this.#createStore(each);
      if (store !== undefined) this.#stores.set(each.name, new RememberedState(store));
    }
    this.watches = externals.map((each) => this.#watchOf(each));
    this.sources = [...this.#stateViews.values()];
  }

  /** Makes the driver of a dependent. */
  createDriver(definition: ExternalDependent, source: ExternalResources): ExternalDriver {
    const state = this.#stores.get(definition.name);
    return new ExternalDriver({ definition, source, state, onReleased: (released) => this.#tellReleased(released) });
  }

  #tellReleased({ primary: about, dependent, item = "", message, logger }: ReleasedResource): void {
    const { name: component } = this.#definition;
    const subject = `${dependent} ${item}`;
    const content = { component, about, type: "Warning", reason: "DeletionFailed", message, subject } as const;
    writeEvent(this.#parts.client, content).catch((error: unknown) =>
      logger.debug({ dependent }, `no Event could be written about it: ${messageOf(error)}`),
    );
  }

  /** Says that a primary is gone. */
  forget(primary: ObjectKey): void {
    for (const store of this.#stores.values()) store.forget(primary);
  }

  #watchOf(dependent: ExternalDependent): ExternalWatch {
    const { name, source, activationCondition, idOf, create, update, delete: remove } = dependent;
    const isWritten = [create, update, remove].some((each) => each !== undefined);
    return {
      name,
      origin: this.#withState(name, source),
      idOf: (resource) => idOf?.(resource) ?? "",
      isActivatedLater: activationCondition !== undefined,
      isWritten,
    };
  }

  // What is fetched for one primary may be found by the ids that are kept of it.
  #withState(name: string, origin: ExternalOrigin): ExternalOrigin {
    if (origin.kind === "poll" || origin.kind === "eventSource" || origin.fetch === undefined) return origin;
    const { fetch } = origin;
    const withState = (primary: KubernetesObject, context: FetchContext) => {
      const state = this.#stores.get(name)?.read(primary) ?? NO_STATE;
      return fetch(primary, { ...context, state } as FetchContext);
    };
    return { ...origin, fetch: withState };
  }

  #createStore({ name, state, bulk }: ExternalDependent): ExternalStateStore | undefined {
    const { primary } = this.#definition.workflow;
    if (state?.kind === "status")
      return createStatusState({
        path: state.path,
        isBulk: bulk !== undefined,
        latest: (object) => this.#latestOf(object),
        mergePatchStatus: ({ metadata }, status) =>
          this.#operations(primary, this.#parts.primaries).mergePatchStatus({
            metadata: { name: metadata.name, namespace: metadata.namespace },
            status,
          } as never),
      });
    if (state === undefined) return undefined;
    const kind = kindOfState(state);
    const { view } = this.#stateViewOf(kind);
    const { client, fieldManager, fieldManagers } = this.#parts;
    const sender = new Sender({ client, fieldManager, fieldManagers });
    return new ObjectStateStore({
      ...{ dependent: name, isBulk: bulk !== undefined, state, primary, label: this.#label, view },
      ownedBy: ({ metadata }) => view.byIndex(OWNER_INDEX, keyOf(metadata)).map(({ object }) => object),
      apply: (object) => this.#operations(kind, view).apply(object as never),
      delete: (object) => sender.delete({ definition: kind, cache: view }, object),
    });
  }

  #stateViewOf(definition: ResourceDefinition): KindSource {
    const kind = kindNameOf(definition);
    const known = this.#stateViews.get(kind);
    if (known !== undefined) return known;
    const source = new KindSource({
      name: definition === CONFIG_MAP ? STATE_SOURCE : `${STATE_SOURCE} ${kind}`,
      request: { definition, labelSelector: `${STATE_LABEL}=${this.#label}` },
      namespaces: "sameAsController",
      // What is outside may be fetched by the ids, so these are known before.
      startPriority: "first",
      // Nobody who asks for ConfigMaps, or writes some, means these.
      isInternal: true,
    });
    this.#stateViews.set(kind, source);
    return source;
  }

  #latestOf(primary: KubernetesObject): KubernetesObject {
    const known = this.#parts.primaries.get(keyOf(primary.metadata) as ObjectKey)?.object;
    return known?.metadata.uid === primary.metadata.uid ? known! : primary;
  }

  #operations(definition: ResourceDefinition, cache: ResourceView): KindOperations<KubernetesObject> {
    const { client, fieldManager, fieldManagers } = this.#parts;
    // An id that is not kept is lost with the process, so it is never held back.
    return new KindOperations(
      { definition, cache },
      { sender: new Sender({ client, fieldManager, fieldManagers }), isUrgent: true },
    );
  }
}

function externalsOf(definition: ControllerDefinition): readonly ExternalDependent[] {
  return dependentsOf(definition).flatMap((each) => (isKubernetes(each) ? [] : [each]));
}

function kindOfState(state: ObjectState): ResourceDefinition {
  if (state.kind === "resource") return state.resource;
  return state.kind === "secret" ? SECRET : CONFIG_MAP;
}
