// What the external dependents of one controller are made of: what is to be known of each, and where the ids of its resources are kept.
import { keyOf, type KubernetesObject, type ObjectKey } from "../base/kubernetes-object.js";
import { labelValueOf } from "../base/primary-link.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
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
import {
  ConfigMapState,
  STATE_LABEL,
  StatusState,
  type ExternalStateStore,
} from "../workflow/dependents/external-state.js";
import { RememberedState } from "../workflow/dependents/remembered-state.js";
import { isKubernetes, type ExternalDependent } from "../workflow/definition/workflow-definition.js";
import { writeEvent } from "../operate/kubernetes-event.js";
import { Writer } from "../write/apply.js";
import { KindOperations } from "../write/kind-operations.js";
import { Sender } from "../write/send.js";

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

/** The name of the event source of the ConfigMaps that keep ids. */
export const STATE_SOURCE = "external-state";

const CONFIG_MAP: ResourceDefinition = {
  group: "",
  version: "v1",
  kind: "ConfigMap",
  plural: "configmaps",
  scope: "Namespaced",
  apiVersion: "v1",
  hasStatusSubresource: false,
  isCustom: false,
  schema: {},
};

const NO_STATE: ReadonlyMap<string, string> = new Map<string, string>();

/** The external dependents of one controller. */
export class ExternalDependents {
  /** What is to be known of each, in their order. */
  readonly watches: readonly ExternalWatch[];
  /** What has to be known besides: the ConfigMaps that keep ids. */
  readonly sources: readonly EventSource[];
  readonly #definition: ControllerDefinition;
  readonly #parts: ExternalParts;
  readonly #label: string;
  readonly #stateView: KindSource;
  readonly #stores = new Map<string, RememberedState>();

  constructor(definition: ControllerDefinition, parts: ExternalParts) {
    this.#definition = definition;
    this.#parts = parts;
    this.#label = labelValueOf(definition.name);
    this.#stateView = new KindSource({
      name: STATE_SOURCE,
      request: { definition: CONFIG_MAP, labelSelector: `${STATE_LABEL}=${this.#label}` },
      namespaces: "sameAsController",
      // What is outside may be fetched by the ids, so these are known before.
      startPriority: "first",
      // Nobody who asks for ConfigMaps, or writes some, means these.
      isInternal: true,
    });
    const externals = externalsOf(definition);
    for (const each of externals) {
      const store = this.#createStore(each);
      if (store !== undefined) this.#stores.set(each.name, new RememberedState(store));
    }
    this.watches = externals.map((each) => this.#watchOf(each));
    const isNeeded = externals.some(({ external }) => external.state?.kind === "configMap");
    this.sources = isNeeded ? [this.#stateView] : [];
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

  #watchOf({ name, external, activationCondition }: ExternalDependent): ExternalWatch {
    const { source, idOf, create, update, delete: remove } = external;
    const isWritten = [create, update, remove].some((each) => each !== undefined);
    return {
      name,
      origin: this.#withState(name, source as ExternalOrigin),
      idOf: (resource) => (idOf as ((resource: unknown) => string) | undefined)?.(resource) ?? "",
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

  #createStore({ name, external: { state }, bulk }: ExternalDependent): ExternalStateStore | undefined {
    const { primary } = this.#definition.workflow;
    if (state?.kind === "status")
      return new StatusState({
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
    const { view } = this.#stateView;
    const { client, fieldManager, fieldManagers } = this.#parts;
    const writer = new Writer({ client, fieldManager, fieldManagers });
    return new ConfigMapState({
      dependent: name,
      primary,
      label: this.#label,
      view,
      apply: (object) => this.#operations(CONFIG_MAP, view).apply(object as never),
      delete: (object) => writer.delete({ definition: CONFIG_MAP, cache: view }, object),
    });
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
