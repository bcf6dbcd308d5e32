import type { Diagnostic } from "../diagnostic.js";
import { describeValue } from "./yaml/describe-value.js";
import { isRecord } from "./yaml/json.js";
import { parseYaml } from "./yaml/parse-yaml.js";
import type { ProjectFile } from "./project-files.js";
import type { CheckSpec } from "./spec-schema.js";
import type {
  ControllerSpec,
  DependencySpec,
  DependentSpec,
  EventSourceSpec,
  ExternalSpec,
  ExternalStateSpec,
  ExtraRuleSpec,
  MovedSpec,
  RemovedSpec,
  WorkflowSettingsSpec,
  WorkflowSpec,
} from "./workflow-spec.js";
import type { YamlDocument } from "./yaml/yaml-document.js";

/** The workflows of a file, and what is wrong with it. */
export interface WorkflowFile {
  readonly workflows: readonly WorkflowSpec[];
  /** Which document of the file each of them is, from 0; empty ones do not count. */
  readonly numbers: readonly number[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the workflow specs of a file: one in each document. */
export function readWorkflows({ file, text }: ProjectFile, checkSpec: CheckSpec): WorkflowFile {
  const { documents, diagnostics: problems } = parseYaml(file, text);
  const diagnostics = [...problems];
  if (documents.length === 0 && problems.length === 0)
    diagnostics.push({
      severity: "error",
      rule: "empty-spec",
      message: "expected a workflow, found an empty file",
      position: { file, line: 1, column: 1 },
    });
  const right = [...documents.entries()].filter(([, document]) => {
    const wrong = isRecord(document.value) ? checkSpec(document) : [notAnObject(document)];
    diagnostics.push(...wrong);
    return wrong.length === 0;
  });
  const workflows = right.map(([, document]) => workflowOf(document));
  return { workflows, numbers: right.map(([number]) => number), diagnostics };
}

function notAnObject(document: YamlDocument): Diagnostic {
  const message = `expected a workflow, found ${describeValue(document.value)}`;
  return { severity: "error", rule: "spec-type", message, ...document.valueAt([]) };
}

// The schema has accepted the document, so it has this shape.
interface CheckedSpec {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly primary: string;
    readonly controller?: ControllerSpec;
    readonly workflow?: WorkflowSettingsSpec;
    readonly statusConditions?: "managed";
    readonly dependents?: { readonly [name: string]: StatedDependent };
    readonly removed?: { readonly [name: string]: RemovedSpec };
    readonly moved?: readonly MovedSpec[];
    readonly eventSources?: { readonly [name: string]: EventSourceSpec };
    readonly rbac?: { readonly extra?: readonly ExtraRuleSpec[] };
  };
}

/** A dependent with flags that may be false, which is their default. */
interface StatedDependent extends Omit<DependentSpec, "bulk" | "dependsOn" | "external"> {
  readonly bulk?: boolean | Exclude<DependentSpec["bulk"], true>;
  readonly dependsOn?: readonly (string | { readonly name: string; readonly optional?: boolean })[];
  readonly external?: Omit<ExternalSpec, "inbound" | "state"> & {
    readonly inbound?: { readonly fetch?: boolean; readonly fetchTimeout?: string };
    readonly state?: Omit<ExternalStateSpec, "perItem"> & { readonly perItem?: boolean };
  };
}

// A flag that is false is the same as none.
function withoutOffFlags({ bulk = false, dependsOn, external, ...dependent }: StatedDependent): DependentSpec {
  return {
    ...dependent,
    ...(bulk === false ? {} : { bulk }),
    ...(dependsOn === undefined ? {} : { dependsOn: dependsOn.map(dependencyOf) }),
    ...(external === undefined ? {} : { external: externalOf(external) }),
  };
}

function dependencyOf(each: NonNullable<StatedDependent["dependsOn"]>[number]): DependencySpec {
  if (typeof each === "string") return each;
  return each.optional === true ? { name: each.name, optional: true } : each.name;
}

function externalOf({ inbound, state, ...external }: NonNullable<StatedDependent["external"]>): ExternalSpec {
  const { fetch = false, ...pushed } = inbound ?? {};
  const { perItem = false, ...kept } = state ?? {};
  return {
    ...external,
    ...(inbound === undefined ? {} : { inbound: { ...pushed, ...(fetch ? { fetch } : {}) } }),
    ...(state === undefined ? {} : { state: { ...kept, ...(perItem ? { perItem } : {}) } }),
  };
}

/** Returns the workflow of a document that the schema accepts. */
export function workflowOf(document: YamlDocument): WorkflowSpec {
  const { metadata, spec } = document.value as CheckedSpec;
  const {
    primary,
    controller = {},
    workflow = {},
    statusConditions,
    dependents = {},
    removed = {},
    eventSources = {},
  } = spec;
  return {
    name: metadata.name,
    ...{ primary, controller, workflow, document },
    ...(statusConditions === undefined ? {} : { statusConditions }),
    dependents: new Map(Object.entries(dependents).map(([name, each]) => [name, withoutOffFlags(each)])),
    removed: new Map(Object.entries(removed)),
    moved: spec.moved ?? [],
    eventSources: new Map(Object.entries(eventSources)),
    extraRules: spec.rbac?.extra ?? [],
  };
}
