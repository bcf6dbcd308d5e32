import { formatPosition, quote } from "../../diagnostic.js";
import {
  isKubernetes,
  type CacheModel,
  type ControllerModel,
  type InformerModel,
  type LocateExpression,
  type ProjectModel,
  type ResourceModel,
} from "../../model/project-model.js";
import { controllerNamesOf, sourceNamesOf } from "../controller-names.js";
import { nameResources, type ResourceName } from "../resource/resource-name.js";
import { expressionFiles, followController } from "./follow/entry-points.js";
import { ReadFollower } from "./follow/follow-reads.js";
import { ReadLog } from "./follow/read-log.js";
import { createSourceProgram, type CodeFile } from "./code/source-program.js";
import { suggestSelector, type SelectorSuggestion } from "./suggest-selector.js";
import type { TrackedSource } from "./follow/values.js";

/** What the code of a project allows an event source to leave out. */
export interface CacheSuggestion {
  readonly controller: ControllerModel;
  readonly source: InformerModel;
  /** What has to be kept; absent if the code may read anything. */
  readonly cache?: Exclude<CacheModel, { kind: "full" }>;
  /** Where the fields are read, or why everything is kept. */
  readonly reason: string;
  /** Absent if the mapping is not by a label. */
  readonly selector?: SelectorSuggestion;
}

/**
 * Finds what the caches of event sources may leave out, from what the spec and the user's code read.
 *
 * If the code may read more than can be followed, no cache is suggested. Objects from which a dependent is made are compared as
 * a whole, so they are kept as a whole.
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
    return { cache: { kind: "full" }, reason: `the dependent ${quote(user.name)} takes its objects from it` };
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
    // Without a class there is none to look objects up by.
    const { className, exportName, localName } = local.get(model.resource) ?? {};
    const classNames = new Set([className, exportName, localName].filter((name) => name !== undefined));
    return [{ model, classNames, typeName: sourceNamesOf(model).resource }];
  });
}
