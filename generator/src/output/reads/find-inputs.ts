import { formatPosition, quote, type SourcePosition } from "../../diagnostic.js";
import type { ControllerModel, LocateExpression, ProjectModel } from "../../model/project-model.js";
import { controllerNamesOf } from "../controller-names.js";
import { nameResources } from "../resource/resource-name.js";
import { createSourceProgram, type CodeFile } from "./code/source-program.js";
import { expressionFiles, followPrimary } from "./follow/entry-points.js";
import { ReadFollower } from "./follow/follow-reads.js";
import { ReadLog, type PrimaryRead } from "./follow/read-log.js";

/** The metadata of its primaries that the code of a controller reads. */
export interface ControllerInputs {
  readonly controller: string;
  /** As the runtime takes them, sorted. */
  readonly inputs: readonly string[];
  /** Why all labels and annotations are inputs; absent if the code can be followed. */
  readonly note?: string;
}

const ALL = ["metadata.annotations", "metadata.labels"];
// What a key of labels and annotations may be (1.36, IsQualifiedName).
const QUALIFIED_NAME = /^(?:[a-z0-9.-]{1,253}\/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/;

/** Finds what functions and expressions read of the metadata of primaries; controllers that read nothing of it are left out. */
export function findInputs(
  model: ProjectModel,
  code: readonly CodeFile[],
  locate: LocateExpression,
): readonly ControllerInputs[] {
  const names = nameResources(model);
  const controllers = model.controllers
    .filter(({ settings }) => settings.generationAware !== false && settings.defaultFilters !== false)
    .map((controller) => ({ controller, folder: controllerNamesOf(controller, names, model.controllers).folder }));
  const expressions = controllers.flatMap(({ controller, folder }) => expressionFiles(controller, folder, locate));
  const program = createSourceProgram([...code, ...expressions]);
  return controllers.flatMap(({ controller, folder }) => {
    const log = new ReadLog([]);
    followPrimary(controller, folder, { program, follower: new ReadFollower(program, log) });
    return inputsOf(controller, log.ofPrimary);
  });
}

function inputsOf(controller: ControllerModel, reads: readonly PrimaryRead[]): ControllerInputs[] {
  const whole = reads.find(({ path }) => path.length < 2);
  const found = reads.filter(({ path }) => path.length >= 2).map(({ path }) => inputAt(path));
  const all = new Set([...found, ...(whole === undefined ? [] : ALL)]);
  // All labels include each of them.
  const inputs = [...all].filter((input) => !input.includes("[") || !all.has(input.slice(0, input.indexOf("["))));
  if (inputs.length === 0) return [];
  const note = whole && { note: noteOf(controller, whole.position) };
  return [{ controller: controller.name, inputs: inputs.sort(), ...note }];
}

function inputAt([metadata, member, key]: readonly string[]): string {
  const whole = `${metadata}.${member}`;
  return key === undefined || !QUALIFIED_NAME.test(key) ? whole : `${whole}['${key}']`;
}

function noteOf({ name, primary }: ControllerModel, position: SourcePosition): string {
  return (
    `controller ${quote(name)} reconciles after a change of any label or annotation of a ${primary.kind}: ${formatPosition(position)} hands on the ` +
    "whole primary or its metadata, where what is read of it cannot be followed; hand on the fields that are needed to count these alone"
  );
}
