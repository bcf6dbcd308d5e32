import type { Diagnostic } from "../diagnostic.js";
import { digestOf } from "../parts/digest.js";
import type { PartMemory } from "../parts/part-memory.js";
import type { ProjectFile } from "./project-files.js";
import { readWorkflows, workflowOf, type WorkflowFile } from "./read-workflows.js";
import { loadSpecSchema } from "./spec-schema.js";
import { parseYaml } from "./yaml/parse-yaml.js";
import { recallDocument } from "./yaml/recall-document.js";
import type { YamlDocument } from "./yaml/yaml-document.js";

/** What the documents of a file say. */
interface SpecOutline {
  /** The workflows: which document of the file each is, and its value. */
  readonly values: readonly (readonly [document: number, value: unknown])[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the workflow specs of a file. If an earlier run has read the same text, it is neither parsed nor checked. */
export async function recallWorkflows(source: ProjectFile, parts: PartMemory): Promise<WorkflowFile> {
  const { file, text } = source;
  const key = digestOf(file, text);
  const { values, diagnostics } = await parts.recallLater("spec", key, async (): Promise<SpecOutline> => {
    const read = readWorkflows(source, await loadSpecSchema());
    const values = read.workflows.map(({ document }, index) => [read.numbers[index] ?? 0, document.value] as const);
    return { values, diagnostics: read.diagnostics };
  });
  let documents: readonly YamlDocument[] | undefined;
  const documentAt = (number: number) => {
    const document = (documents ??= parseYaml(file, text).documents)[number];
    if (document === undefined) throw new Error(`${file} has fewer documents than it had`);
    return document;
  };
  const workflows = values.map(([number, value]) => {
    const options = { key: `${key} ${number}`, parts, read: () => documentAt(number) };
    return workflowOf(recallDocument({ file, value }, options));
  });
  return { workflows, numbers: values.map(([number]) => number), diagnostics };
}
