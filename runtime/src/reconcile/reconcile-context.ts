import type { EventDraft } from "../base/activity.js";
import { keyFrom, sortedByKey, type KubernetesObject, type ResourceReader } from "../base/kubernetes-object.js";
import type { Defined, SecondaryType } from "../base/resource-definition.js";
import type { ResourceView } from "../cache/resource-view.js";
import type { ApiClient } from "../client/api-client.js";
import type { ReconcileScope } from "../schedule/reconcile-scope.js";
import type { Context, EventSources, SecondariesOptions, SecondaryOptions } from "../workflow/definition/context.js";
import type { WorkflowDefinition } from "../workflow/definition/workflow-definition.js";
import { dependentsOf, type ControllerDefinition } from "./controller-definition.js";
import type { PrimaryDependencies } from "./primary-reconciler.js";
import { SecondaryAccess } from "./secondary-access.js";
import type { WorkflowRuns } from "./workflow-runs.js";

/** Returns what creates the contexts of a controller. What not every reconcile needs is made when it is asked for. */
export function contextFactoryOf(
  definition: ControllerDefinition,
  { primaries, secondaries, sender, ...dependencies }: PrimaryDependencies,
) {
  const { primary: kind } = definition.workflow;
  const access = new SecondaryAccess(secondaries, { primary: kind, dependents: dependentsOf(definition) });
  const reader = readerOf(primaries);
  return (scope: ReconcileScope, primary: KubernetesObject, runs: WorkflowRuns): Context => {
    const { signal, logger, retry, reasons, isPrimaryDeleted } = scope;
    let client: ApiClient | undefined;
    // No function needs `this`, so that each can be taken out of the context.
    const context: Context = {
      isPrimaryFinalStateUnknown: scope.isFinalStateUnknown,
      ...{ signal, logger, retry, reasons, isPrimaryDeleted },
      primaries: reader,
      attributes: new Map(),
      workflow: runs.own,
      workflows: { get: (wanted: string | WorkflowDefinition) => runs.other(wanted) },
      get eventSources() {
        return Object.freeze({
          get: (name) => secondaries.get(name),
          // Of what it watches, no more has to be known than concerns the primary.
          register: (source) => secondaries.register(source, primary),
          deregister: (name) => secondaries.deregister(name),
        } satisfies EventSources);
      },
      get client() {
        return (client ??= sender.clientFor({ definition: kind, cache: primaries }, { signal, logger, primary }));
      },
      get resources() {
        return dependencies.resources.within({ signal, logger, primary });
      },
      get expectations() {
        return dependencies.expectations.of(scope.key, { primary, context });
      },
      get events() {
        const about = { controller: definition.name, about: primary };
        return { record: (draft: EventDraft) => dependencies.events?.record(about, draft) };
      },
      get fencingToken() {
        return dependencies.fencingToken?.();
      },
      isNextReconcileImminent: () => scope.isNextReconcileImminent(),
      secondary: ((type: Defined | string, options?: SecondaryOptions) =>
        access.find(primary, typeOf(type), { ...options, discovered: runs.discovered })) as Context["secondary"],
      secondaries: ((type: Defined | string, options?: SecondariesOptions) =>
        access.list(primary, typeOf(type), { ...options, discovered: runs.discovered })) as Context["secondaries"],
    };
    return context;
  };
}

function readerOf(view: ResourceView): ResourceReader<KubernetesObject> {
  return {
    get: (ref) => view.get(keyFrom(ref))?.object,
    list: (options) => sortedByKey(view.list(options).map(({ object }) => object)),
    byIndex: (index, value) => sortedByKey(view.byIndex(index, value).map(({ object }) => object)),
  };
}

function typeOf(type: Defined | string): SecondaryType {
  return typeof type === "string" ? type : type.definition;
}
