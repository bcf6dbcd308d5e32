import { formatPosition, quote, type Diagnostic, type SourcePosition } from "../../diagnostic.js";
import {
  isKubernetes,
  type ControllerModel,
  type EventSourceModel,
  type FormModel,
  type InformerModel,
  type LocateExpression,
  type ProjectModel,
  type ResourceModel,
} from "../../model/project-model.js";
import { controllerNamesOf, nameOrThrow, sourceNamesOf } from "../controller-names.js";
import { nameResources, type ResourceName } from "../resource/resource-name.js";
import { deriveSelector } from "./derive-selector.js";
import { expressionFiles, followController } from "./entry-points.js";
import { ReadFollower } from "./follow-reads.js";
import { ReadLog } from "./read-log.js";
import { createSourceProgram, type CodeFile } from "./source-program.js";
import type { TrackedSource } from "./values.js";

/** A model in which every event source keeps the fields that are read, and a report about it. */
export interface DerivedModel {
  readonly model: ProjectModel;
  readonly diagnostics: readonly Diagnostic[];
  /** What each event source that watches a kind keeps, and which objects those with a mapping by label watch: a line for each. */
  readonly report: readonly string[];
}

/** Tells whether what a project's event sources keep depends on its code. */
export function needsSources({ controllers }: ProjectModel): boolean {
  return controllers.some(({ eventSources }) => eventSources.some(({ kind }) => kind === "informer"));
}

/**
 * Decides what the caches of event sources keep, from what the spec and the user's code read: all, some fields, or the metadata; and of
 * which objects, from what their mapping asks for.
 *
 * The types of what is kept are generated from it, so code that reads more later does not compile until this has run again. Nothing
 * else than the runtime writes these objects, for it writes none of them; dependents are always kept whole.
 */
export function deriveForms(model: ProjectModel, code: readonly CodeFile[], locate: LocateExpression): DerivedModel {
  if (!needsSources(model)) return { model, diagnostics: [], report: [] };
  const names = nameResources(model.resources);
  const folders = new Map(
    model.controllers.map((controller) => [controller, controllerNamesOf(controller, names, model.controllers).folder]),
  );
  const folderOf = (controller: ControllerModel) => folders.get(controller) ?? controller.name;
  const expressions = model.controllers.flatMap((controller) =>
    expressionFiles(controller, folderOf(controller), locate),
  );
  const program = createSourceProgram([...code, ...expressions]);
  const diagnostics: Diagnostic[] = [];
  const report: string[] = [];
  const controllers = model.controllers.map((controller) => {
    const sources = trackedSourcesOf(controller, model, names);
    const log = new ReadLog(sources);
    const follower = new ReadFollower(program, log);
    followController(controller, { folder: folderOf(controller), sources }, { program, follower });
    const derive = (source: EventSourceModel): EventSourceModel => {
      const tracked = sources.find((each) => each.model === source);
      if (source.kind !== "informer" || tracked === undefined) return source;
      const label = model.controllers.length > 1 ? `${controller.name}.${source.name}` : source.name;
      if (source.statedForm !== undefined) {
        report.push(`${label}: ${describeForm(source.form)} (stated in ${formatPosition(source.statedForm.position)})`);
        diagnostics.push(...checkStatedForm(source, log.readsOf(tracked)));
      }
      const derived = source.statedForm === undefined ? formOf(tracked, controller, log) : undefined;
      if (derived !== undefined) report.push(`${label}: ${describeForm(derived.form)} (${derived.reason})`);
      const selected = deriveSelector(source, log.lookupOf(tracked));
      if (selected !== undefined) report.push(`${label}: ${selected.report}`);
      return Object.freeze({
        ...source,
        ...(derived === undefined ? {} : { form: derived.form }),
        ...(selected?.labelSelector === undefined ? {} : { labelSelector: selected.labelSelector }),
      });
    };
    return Object.freeze({ ...controller, eventSources: Object.freeze(controller.eventSources.map(derive)) });
  });
  return { model: Object.freeze({ ...model, controllers: Object.freeze(controllers) }), diagnostics, report };
}

// What a dependent is compared with has to be there as a whole.
function formOf(tracked: TrackedSource, { dependents }: ControllerModel, log: ReadLog) {
  const { name } = tracked.model;
  const user = dependents.find((dependent) => isKubernetes(dependent) && dependent.eventSource === name);
  if (user === undefined) return log.formOf(tracked);
  return { form: { kind: "full" } as const, reason: `the dependent ${quote(user.name)} takes its objects from it` };
}

function trackedSourcesOf(
  controller: ControllerModel,
  { controllers }: ProjectModel,
  names: ReadonlyMap<ResourceModel, ResourceName>,
): TrackedSource[] {
  const local = controllerNamesOf(controller, names, controllers).resources;
  return controller.eventSources.flatMap((model) => {
    if (model.kind !== "informer") return [];
    const { className, exportName, localName } = nameOrThrow(local, model.resource);
    return [
      { model, classNames: new Set([className, exportName, localName]), typeName: sourceNamesOf(model).resource },
    ];
  });
}

function describeForm(form: FormModel): string {
  if (form.kind === "full") return "keeps everything";
  return form.kind === "metadata" ? "keeps metadata only" : `keeps ${form.paths.join(", ")} only`;
}

interface Read {
  readonly path: string;
  readonly position: SourcePosition;
}

function checkStatedForm({ name, form, statedForm }: InformerModel, reads: readonly Read[]): Diagnostic[] {
  if (form.kind === "full" || statedForm === undefined) return [];
  const kept = form.kind === "metadata" ? [] : form.paths;
  const missing = reads.find(({ path }) => !kept.some((other) => path === other || path.startsWith(`${other}.`)));
  if (missing === undefined) return [];
  const needed = [...new Set([...kept, ...reads.map(({ path }) => path)])].sort();
  return [
    {
      severity: "error",
      rule: "cache-form",
      message: `${quote(name)} ${describeForm(form)}, but ${formatPosition(missing.position)} reads ${quote(missing.path)}`,
      ...statedForm,
      hint: `state cache: { paths: [${needed.join(", ")}] }, or no cache: at all, to keep what is read`,
    },
  ];
}
