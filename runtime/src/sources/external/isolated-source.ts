import { keyOf, type ObjectKey } from "../../base/kubernetes-object.js";
import type { ExternalSource } from "./external-source.js";

/**
 * Returns a source whose `load` never fails: what could not be fetched is thrown when the resources of the primary are read. So a service
 * that is down fails the dependents that need it, and nothing else of the primary.
 */
export function isolated<Source extends ExternalSource<unknown>>(source: Source): Source {
  const failures = new Map<ObjectKey, { readonly error: unknown }>();
  const members: Pick<ExternalSource<unknown>, "load" | "secondariesOf" | "onPrimaryChange" | "stop"> = {
    async load(primary, signal) {
      const key = keyOf(primary.metadata);
      failures.delete(key);
      try {
        await source.load?.(primary, signal);
      } catch (error) {
        failures.set(key, { error });
      }
    },
    secondariesOf(primary) {
      const failure = failures.get(keyOf(primary.metadata));
      if (failure !== undefined) throw failure.error;
      return source.secondariesOf(primary);
    },
    onPrimaryChange(change) {
      if (change.kind === "deleted") failures.delete(change.key);
      source.onPrimaryChange?.(change);
    },
    stop() {
      failures.clear();
      return source.stop();
    },
  };
  // All else is the source's own, its getters included.
  return Object.assign(Object.create(source) as Source, members);
}
