import { quote } from "../../diagnostic.js";
import type { InformerModel, ProjectModel } from "../../model/project-model.js";

/** Returns a note for each event source that keeps all objects of a built-in kind, whole: often most of the memory of an operator. */
export function wideSourceNotes({ controllers }: Pick<ProjectModel, "controllers">): string[] {
  return controllers.flatMap(({ name, eventSources }) =>
    eventSources
      .filter((source): source is InformerModel => source.kind === "informer" && isWide(source))
      .map(({ name: source, resource: { kind } }) => {
        const narrowed =
          "set labelSelector, fieldSelector or cache; gen-operator suggest caches finds out what your code reads";
        return `controller ${quote(name)} keeps every ${kind} that event source ${quote(source)} may see, whole: ${narrowed}`;
      }),
  );
}

// The objects of a custom resource are few, in most clusters.
function isWide({ resource, labelSelector, fieldSelector, cache, maxCachedObjects }: InformerModel): boolean {
  const isNarrow = labelSelector !== undefined || fieldSelector !== undefined || maxCachedObjects !== undefined;
  return !resource.isCustom && !isNarrow && cache.kind === "full";
}
