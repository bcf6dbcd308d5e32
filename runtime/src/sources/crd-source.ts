import type { SourceHealth } from "../base/activity.js";
import { type ResourceDefinition, crdNameOf } from "../base/kubernetes-object.js";
import { type CustomResourceDefinition, customResourceDefinition } from "../client/custom-resource-definition.js";
import type { EventSource } from "./event-source.js";
import { KindSource } from "./kind-source.js";

// The fields to cache: a CRD may contain a megabyte of schemas.
const KEPT = ["spec.versions[].name", "spec.versions[].served", "status.conditions"];

/** The versions of a kind that the API server serves. The event source is named after the CustomResourceDefinition. */
export interface ServedKind {
  /** Undefined while unknown. */
  readonly servedVersions: readonly string[] | undefined;
  /** Whether a CRD has existed since the start. Without one, an aggregated API server may serve the kind. */
  readonly wasDefined: boolean;
}

/**
 * Creates an event source that reconciles all primaries when the CRD of a kind is established or deleted. Reconciles do not wait for it, and the
 * operator works without permission to watch CRDs.
 */
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
      // While a CRD is terminating, its objects are being deleted and none can be created.
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
