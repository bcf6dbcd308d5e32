// The sources of one controller over simulated informers.
import type { KubernetesObject } from "#runtime/base/kubernetes-object.js";
import {
  ControllerSources,
  type ControllerSourcesOptions,
  type SourcesListener,
} from "#runtime/sources/controller-sources.js";
import { OwnViews } from "#runtime/cache/resource-view.js";
import type { EventSource, EventSourceContext } from "#runtime/sources/event-source.js";
import { createPrimarySource } from "#runtime/sources/kind-source.js";
import { createSourceContext, page } from "./source-context.js";

/** Creates the sources of a controller of pages, with what they tell and what their informers know. */
export function createSources({
  onPrimaryChange,
  forget = () => {},
  ...options
}: Partial<ControllerSourcesOptions & SourcesListener> = {}) {
  const { context, informers, lines, settle } = createSourceContext();
  const told: string[] = [];
  const listener: SourcesListener = {
    onPrimaryChange: onPrimaryChange ?? (({ kind, key }) => void told.push(`primary ${kind} ${key}`)),
    forget,
    onSecondaryChange: (keys, { source, object }) => void told.push(`${source} ${object ?? ""} ${[...keys].join()}`),
  };
  const sources = new ControllerSources({
    controller: "pages",
    primary: createPrimarySource({ definition: page }),
    views: new OwnViews(),
    dependents: [],
    fieldManager: "pages",
    client: context.client,
    logger: context.logger,
    clock: context.clock,
    informers,
    ...options,
  });
  /** Lists `objects` for everything that is watched and has no state yet, for as long as something new is. */
  const sync = async (objects: { readonly [kind: string]: readonly KubernetesObject[] } = {}) => {
    for (let before = -1; before !== informers.all.length; await settle()) {
      before = informers.all.length;
      for (const informer of informers.all)
        if (informer.health.status === "unknown")
          informer.sync("10", ...(objects[informer.request.definition.kind] ?? []));
    }
  };
  const start = async (objects?: { readonly [kind: string]: readonly KubernetesObject[] }) => {
    const started = sources.start(listener);
    await sync(objects);
    await started;
  };
  return { sources, informers, lines, told, listener, sync, start, settle };
}

/** A source of the user that writes down what happens to it. */
export function recordingSource(name: string, history: string[], rest: Partial<EventSource> = {}): EventSource {
  let context: EventSourceContext | undefined;
  return {
    name,
    get health() {
      return { status: context === undefined ? ("unknown" as const) : ("healthy" as const) };
    },
    async start(given) {
      history.push(`start ${name}`);
      context = given;
      await Promise.resolve();
      history.push(`started ${name}`);
    },
    async stop() {
      history.push(`stop ${name}`);
      await Promise.resolve();
      history.push(`stopped ${name}`);
    },
    secondariesOf: () => [],
    ...rest,
  };
}
