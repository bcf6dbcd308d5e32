import { presenceChecksOf } from "./presence-check.js";
import { kindsOf, type ControllerModel, type ResourceModel } from "./project-model.js";

/** Returns every kind that the spec of a controller names, each once, that of the primary first. */
export function usedKindsOf({
  primary,
  dependents,
  eventSources,
  removed = [],
}: Pick<ControllerModel, "primary" | "dependents" | "eventSources" | "removed">): ResourceModel[] {
  const written = [...dependents.flatMap(kindsOf), ...removed.map(({ resource }) => resource)];
  const watched = eventSources.flatMap((source) => (source.kind === "informer" ? [source.resource] : []));
  const asked = presenceChecksOf({ dependents, eventSources }).map(({ resource }) => resource);
  return [...new Set([primary, ...written, ...watched, ...asked])];
}
