import { crdNameOf, type ResourceDefinition } from "../../base/resource-definition.js";
import { customResourceDefinition, type CustomResourceDefinition } from "../../client/custom-resource-definition.js";
import type { EventSource } from "../event-source.js";
import { KindSource } from "./kind-source.js";
import type { SourceHealth } from "../../base/activity.js";

// A definition may have a megabyte of schemas. The parts that it lacks itself are missing in what is left of it, too.
const KEPT = ["spec.versions[].name", "spec.versions[].served", "status.conditions"];

/** Knows in which versions the API server serves a kind: the event source that has the name of its CustomResourceDefinition. */
export interface ServedKind {
  /** Undefined while that is not known. */
  readonly servedVersions: readonly string[] | undefined;
  /** Whether there has been a definition since the start. Without one, an aggregated API server may serve the kind. */
  readonly wasDefined: boolean;
}

/** Creates an event source that reconciles all primaries when a kind is defined or no longer is. Nothing waits for it, or needs the right to it. */
export function crdSource(definition: ResourceDefinition): EventSource & ServedKind {
  const name = crdNameOf(definition);
  const watch = new KindSource({
    name,
    request: { definition: customResourceDefinition, fieldSelector: `metadata.name=${name}`, projection: KEPT },
    namespaces: "all",
    mapper: (_, { primaries }) => primaries.keys(),
  });
  let wasDefined = false;
  return {
    name,
    get wasDefined() {
      return (wasDefined ||= watch.get(name) !== undefined);
    },
    get health(): SourceHealth {
      const { health } = watch;
      return health.status === "unhealthy" ? { ...health, status: "unknown" } : health;
    },
    get servedVersions() {
      if (watch.health.status !== "healthy") return undefined;
      const { spec, status } = (watch.get(name) ?? {}) as Partial<CustomResourceDefinition>;
      const isTrue = (wanted: string) =>
        status?.conditions?.some(({ type, status }) => type === wanted && status === "True") === true;
      // While a definition is terminating, its objects are deleted and none can be created.
      if (!isTrue("Established") || isTrue("Terminating")) return [];
      return (spec?.versions ?? []).filter(({ served }) => served === true).map(({ name }) => name);
    },
    async start(context) {
      void watch.start(context);
    },
    stop: () => watch.stop(),
    onPrimaryChange: (change) => watch.onPrimaryChange(change),
    secondariesOf: () => [],
  };
}
