import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import { labelValueOf, PRIMARY_INDEX, provenLinkOf } from "../base/primary-link.js";
import { withFields, type Logger } from "../base/logger.js";
import { builtinKindOf, kindNameOf, type ResourceDefinition } from "../base/resource-definition.js";
import type { EventSource } from "../sources/event-source.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { ExternalDependentSource, ExternalOrigin, ExternalWatch } from "../sources/external/external-watch.js";
import type { FetchContext } from "../sources/external/external-source.js";
import { KindSource } from "../sources/kind/kind-source.js";
import { dependentsOf, type ControllerDefinition } from "../reconcile/controller-definition.js";
import { ExternalReconciler } from "../workflow/dependents/external-reconciler.js";
import { createStatusState, NO_STATES, RememberedState } from "../workflow/dependents/external-state.js";
import type { ExternalStateStore } from "../workflow/dependents/external-state.js";
import { ObjectStateStore, STATE_LABEL } from "../workflow/dependents/object-state.js";
import { isKubernetes, type ExternalDependent } from "../workflow/definition/workflow-definition.js";
import { KindOperations } from "../write/kind-operations.js";
import type { WriteTarget } from "../write/send/apply-matcher.js";
import { latestOf } from "../write/send/on-latest.js";
import type { Sender } from "../write/send/send.js";

interface ExternalParts {
  /** Keeps the ids. */
  readonly sender: Sender;
  readonly primaries: ResourceView;
  readonly logger: Logger;
}

// The name of the event source of the objects that keep ids, by their kind if they are no ConfigMaps.
const STATE_SOURCE = "external-state";

const CONFIG_MAP: ResourceDefinition = builtinKindOf({ kind: "ConfigMap", plural: "configmaps" });
const SECRET: ResourceDefinition = builtinKindOf({ kind: "Secret", plural: "secrets" });

/** What is to be known of the external dependents of one controller, and where the ids of their resources are kept. */
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
    const externals = dependentsOf(definition).flatMap((each) => (isKubernetes(each) ? [] : [each]));
    for (const each of externals) {
      const store = this.#createStore(each);
      if (store !== undefined) this.#stores.set(each.name, new RememberedState(store));
    }
    this.watches = externals.map((each) => this.#watchOf(each));
    this.sources = [...this.#stateViews.values()];
  }

  createReconciler(definition: ExternalDependent, source: ExternalDependentSource): ExternalReconciler {
    return new ExternalReconciler({ definition, source, state: this.#stores.get(definition.name) });
  }

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

  // The resources of one primary may be fetched by the ids that are kept of it.
  #withState(name: string, origin: ExternalOrigin): ExternalOrigin {
    if (origin.kind === "poll" || origin.kind === "eventSource" || origin.fetch === undefined) return origin;
    const { fetch } = origin;
    const withState = (primary: KubernetesObject, context: FetchContext) => {
      const state = this.#stores.get(name)?.read(primary) ?? NO_STATES;
      return fetch(primary, { ...context, state } as FetchContext);
    };
    return { ...origin, fetch: withState };
  }

  #createStore({ name, movedFrom, state, bulk, stateOf }: ExternalDependent): ExternalStateStore | undefined {
    const { primary } = this.#definition.workflow;
    const { primaries, sender } = this.#parts;
    const form = { isMap: bulk !== undefined, isObject: stateOf !== undefined };
    // What is kept is written to its end also when its step is given up: an id that is not kept is lost with the process.
    const causeOf = (about: KubernetesObject) => ({ dependent: name, logger: this.#loggerFor(about) });
    // Nor is it held back when it is written over and over.
    const operationsOn = (target: WriteTarget, about: KubernetesObject) =>
      new KindOperations(target, { sender, isUrgent: true, cause: causeOf(about) });
    if (state?.kind === "status")
      return createStatusState({
        path: state.path,
        form,
        latest: (object) => latestOf(primaries, object),
        mergePatchStatus: (about, status) => {
          const { name: own, namespace } = about.metadata;
          const operations = operationsOn({ definition: primary, cache: primaries }, about);
          return operations.mergePatchStatus({ metadata: { name: own, namespace }, status } as never);
        },
      });
    if (state === undefined) return undefined;
    const kind = state.kind === "resource" ? state.resource : state.kind === "secret" ? SECRET : CONFIG_MAP;
    const { view } = this.#stateViewOf(kind);
    const target = { definition: kind, cache: view };
    return new ObjectStateStore({
      ...{ dependent: name, movedFrom, form, state, primary, label: this.#label, view },
      ownedBy: ({ metadata }) => view.byIndex(PRIMARY_INDEX, provenLinkOf({ metadata })).map(({ object }) => object),
      apply: (object, about) => operationsOn(target, about).apply(object as never),
      delete: (object, about) => sender.delete(target, object, { cause: causeOf(about) }),
      warn: (text, about) => this.#loggerFor(about).warn({ dependent: name }, text),
    });
  }

  #stateViewOf(definition: ResourceDefinition): KindSource {
    const kind = kindNameOf(definition);
    const known = this.#stateViews.get(kind);
    if (known !== undefined) return known;
    const source = new KindSource({
      name: definition === CONFIG_MAP ? STATE_SOURCE : `${STATE_SOURCE} ${kind}`,
      request: { definition, labelSelector: `${STATE_LABEL}=${this.#label}` },
      // External resources may be fetched by the ids, so the ids are loaded first.
      startPriority: "first",
      // Nobody who asks for ConfigMaps, or writes some, means these.
      isInternal: true,
    });
    this.#stateViews.set(kind, source);
    return source;
  }

  #loggerFor({ metadata: { namespace, name } }: KubernetesObject): Logger {
    const { name: controller, workflow } = this.#definition;
    return withFields(this.#parts.logger, () => ({ controller, kind: workflow.primary.kind, namespace, name }));
  }
}
