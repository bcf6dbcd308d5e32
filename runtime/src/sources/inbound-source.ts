import type { ObjectKey } from "../base/kubernetes-object.js";
import type { EventSource, EventSourceContext } from "./event-source.js";
import { HealthRecord } from "./health-record.js";

/** An event source through which the user's code asks for reconciles; it knows no resources (JOSDK SimpleInboundEventSource). */
export interface InboundSource extends EventSource<never> {
  /** Asks for primaries to be reconciled; without effect while the source is stopped. */
  notify(...primaries: readonly ObjectKey[]): void;
}

/** Creates an event source for triggers from outside, such as a webhook or a queue. */
export function inboundSource({ name }: { readonly name: string }): InboundSource {
  const record = new HealthRecord(name);
  let context: EventSourceContext | undefined;
  return {
    name,
    get health() {
      return record.health;
    },
    async start(given) {
      context = given;
      record.start(given.logger);
    },
    async stop() {
      context = undefined;
      record.stop();
    },
    secondariesOf: () => [],
    notify: (...primaries) => context?.notify(primaries),
  };
}
