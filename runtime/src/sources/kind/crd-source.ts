import { keyOf, type KubernetesObject } from "../../base/kubernetes-object.js";
import { crdNameOf, type ResourceDefinition } from "../../base/resource-definition.js";
import { customResourceDefinition, type CustomResourceDefinition } from "../../client/custom-resource-definition.js";
import type { EventSource } from "../event-source.js";
import { KindSource } from "./kind-source.js";
import type { SourceHealth } from "../../base/health.js";

/** What is left of a definition: the parts that it lacks are missing. */
type Kept = KubernetesObject & Partial<Pick<CustomResourceDefinition, "spec" | "status">>;

// A definition may have a megabyte of schemas.
const KEPT = ["spec.versions[].name", "spec.versions[].served", "status.conditions"];

/** Knows whether the API server serves a kind: the event source that has the name of its CustomResourceDefinition. */
export interface ServedKind {
  /** Undefined while that is not known. */
  readonly isServed: boolean | undefined;
}

/**
 * Creates an event source that watches whether a kind is defined: when that changes, all primaries are reconciled. Nothing waits for it, and
 * it is not unhealthy where the operator may not watch definitions.
 */
export function crdSource(definition: ResourceDefinition): EventSource & ServedKind {
  const name = crdNameOf(definition);
  const watch = new KindSource({
    name,
    request: { definition: customResourceDefinition, fieldSelector: `metadata.name=${name}`, projection: KEPT },
    namespaces: "all",
    mapper: (_, { primaries }) => primaries.keys(),
  });
  return {
    name,
    get health(): SourceHealth {
      const { health } = watch;
      return health.status === "unhealthy" ? { ...health, status: "unknown" } : health;
    },
    get isServed() {
      if (watch.health.status !== "healthy") return undefined;
      const found = watch.view.get(keyOf({ name }))?.object as Kept | undefined;
      return found !== undefined && serves(found, definition.version);
    },
    async start(context) {
      void watch.start(context);
    },
    stop: () => watch.stop(),
    onPrimaryChange: (change) => watch.onPrimaryChange(change),
    secondariesOf: () => [],
  };
}

function serves({ spec, status }: Kept, version: string): boolean {
  const isEstablished = status?.conditions?.some(({ type, status }) => type === "Established" && status === "True");
  return (
    isEstablished === true && (spec?.versions?.some(({ name, served }) => name === version && served === true) ?? false)
  );
}
