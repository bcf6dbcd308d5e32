import { isLabelKey } from "../check/watches.js";
import { expressionFiles, followController } from "../code/entry-points.js";
import { ReadFollower } from "../code/follow-reads.js";
import { ReadLog, type TrackedSource } from "../code/reads.js";
import { type CodeFile, createSourceProgram } from "../code/source-program.js";
import { type SourcePosition, formatPosition, quote } from "../diagnostic.js";
import { type ResourceName, controllerNamesOf, nameResources, sourceNamesOf } from "../emit/names.js";
import {
  type CacheModel,
  type ControllerModel,
  type InformerModel,
  type LocateExpression,
  type ProjectModel,
  type ResourceModel,
  isKubernetes,
} from "../model/project-model.js";

/** A smaller cache for an event source that suffices for the code of a project. */
export interface CacheSuggestion {
  readonly controller: ControllerModel;
  readonly source: InformerModel;
  /** The sufficient cache. Absent if the code may read anything. */
  readonly cache?: Exclude<CacheModel, { kind: "full" }>;
  /** Where the fields are read, or why everything must be cached. */
  readonly reason: string;
  /** Absent if the event source is not mapped by a label. */
  readonly selector?: SelectorSuggestion;
}

/**
 * Suggests caches for event sources, based on the fields that the spec and user code read.
 *
 * If the code may read more than the analysis can follow, no cache is suggested. Objects of dependents are compared as a whole, so they must be
 * cached in full.
 */
export function suggestCaches(
  model: ProjectModel,
  code: readonly CodeFile[],
  locate: LocateExpression,
): CacheSuggestion[] {
  const names = nameResources(model);
  const folders = new Map(
    model.controllers.map((controller) => [controller, controllerNamesOf(controller, names, model.controllers).folder]),
  );
  const folderOf = (controller: ControllerModel) => folders.get(controller) ?? controller.name;
  const expressions = model.controllers.flatMap((controller) =>
    expressionFiles(controller, folderOf(controller), locate),
  );
  const program = createSourceProgram([...code, ...expressions]);
  return model.controllers.flatMap((controller) => {
    const sources = trackedSourcesOf(controller, model, names);
    const log = new ReadLog(sources);
    const follower = new ReadFollower(program, log);
    followController(controller, { folder: folderOf(controller), sources }, { program, follower });
    return sources.map((tracked): CacheSuggestion => {
      const source = tracked.model;
      const { cache, reason } = neededOf(tracked, controller, log);
      const selector = suggestSelector(source, log.lookupOf(tracked));
      return {
        ...{ controller, source, reason },
        ...(cache.kind === "full" ? {} : { cache }),
        ...(selector === undefined ? {} : { selector }),
      };
    });
  });
}

function neededOf(
  tracked: TrackedSource,
  { dependents }: ControllerModel,
  log: ReadLog,
): { readonly cache: CacheModel; readonly reason: string } {
  const { name } = tracked.model;
  const user = dependents.find((dependent) => isKubernetes(dependent) && dependent.eventSource === name);
  if (user !== undefined)
    return { cache: { kind: "full" }, reason: `dependent ${quote(user.name)} takes its objects from it` };
  const escape = log.escapeOf(tracked);
  return escape === undefined
    ? log.neededOf(tracked)
    : { cache: { kind: "full" }, reason: `used as a whole in ${formatPosition(escape)}` };
}

function trackedSourcesOf(
  controller: ControllerModel,
  { controllers }: ProjectModel,
  names: ReadonlyMap<ResourceModel, ResourceName>,
): TrackedSource[] {
  const local = controllerNamesOf(controller, names, controllers).resources;
  return controller.eventSources.flatMap((model) => {
    if (model.kind !== "informer") return [];
    // An untyped kind has no class by which objects could be looked up.
    const { className, exportName, localName } = local.get(model.resource) ?? {};
    const classNames = new Set([className, exportName, localName].filter((name) => name !== undefined));
    return [{ model, classNames, typeName: sourceNamesOf(model).resource }];
  });
}

/** Whether the watch of an event source can be limited to objects with the label of its mapping. */
type SelectorSuggestion =
  | { readonly kind: "selector"; readonly labelSelector: string }
  /** The spec already has such a selector. */
  | { readonly kind: "stated" }
  | { readonly kind: "none"; readonly reason: string };

/**
 * Decides whether the watch of an event source can be limited to objects with the label of its mapping. Undefined if it is not mapped by a label.
 * `lookup` is a position where the code may look up an object without the label.
 */
function suggestSelector(source: InformerModel, lookup: SourcePosition | undefined): SelectorSuggestion | undefined {
  const { mapping, labelSelector: stated = "" } = source;
  if (mapping.kind !== "label") return undefined;
  const { name } = mapping.keys;
  if (requiresLabel(stated, name)) return { kind: "stated" };
  const reason = obstacleOf(source, { key: name, lookup });
  if (reason !== undefined) return { kind: "none", reason };
  return { kind: "selector", labelSelector: stated === "" ? name : `${stated},${name}` };
}

// Every requirement except negative ones excludes objects without the label.
function requiresLabel(selector: string, key: string): boolean {
  return selector
    .split(/,(?![^(]*\))/)
    .map((requirement) => requirement.trim())
    .some((requirement) => {
      const rest = requirement.startsWith(key) ? requirement.slice(key.length) : undefined;
      return rest !== undefined && /^(?:$|\s*==?(?!=)|\s+in\b)/.test(rest);
    });
}

function obstacleOf(
  { primaryToSecondary, filters }: InformerModel,
  { key, lookup }: { readonly key: string; readonly lookup: SourcePosition | undefined },
): string | undefined {
  if (!isLabelKey(key)) return "its label is not a valid label key";
  if (primaryToSecondary !== undefined) return "primaryToSecondary may name objects without it";
  // With the selector, an object that gains the label is an addition, and one that loses it is a deletion; without it, both are updates.
  const filter = (["onAdd", "onDelete", "generic"] as const).find((name) => filters[name] !== undefined);
  if (filter !== undefined) return `the filter ${filter} would see other changes`;
  return lookup === undefined ? undefined : `objects without it may be looked up in ${formatPosition(lookup)}`;
}
