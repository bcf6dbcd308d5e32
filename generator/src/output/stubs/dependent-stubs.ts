import {
  isKubernetes,
  isReadOnly,
  ownOperationsOf,
  type ControllerModel,
  type DependentModel,
  type ExternalDependentModel,
  type KubernetesDependentModel,
  type ResourceModel,
} from "../../model/project-model.js";
import { dependentNamesOf, type ControllerNames } from "../controller-names.js";
import { dependentTypesOf, hasFile, isFetched } from "../controller/dependent-types.js";
import { minimalFieldsOf } from "./minimal-value.js";
import { printLine } from "../print/print-value.js";
import { inputNameOf } from "../resource/resource-name.js";
import { buildRuntimeSchema } from "../resource/runtime-schema.js";
import type { NamedController, Stub } from "./stub.js";
import { listTemplates, renderTemplate, type Replacements } from "../project/template.js";

/** Returns a file for each dependent that needs functions of the user's. */
export async function dependentStubs(named: NamedController): Promise<Stub[]> {
  const kinds = await listTemplates("stubs/kinds");
  const { controller, names } = named;
  return controller.dependents.filter(hasFile).map((dependent) => ({
    path: `src/${names.folder}/dependents/${dependentNamesOf(dependent).file}.ts`,
    render: () => (isKubernetes(dependent) ? renderObject(dependent, named, kinds) : renderExternal(dependent, names)),
  }));
}

async function renderObject(
  dependent: KubernetesDependentModel,
  { controller, names }: NamedController,
  kinds: ReadonlySet<string>,
): Promise<string> {
  const { resource, bulk } = dependent;
  const { group, version, kind } = resource;
  const types = dependentNamesOf(dependent);
  const template = `${group === "" ? "core" : group}.${version}.${kind}.ts`;
  const hasOwnTemplate = bulk === undefined && kinds.has(template);
  const required = hasOwnTemplate ? {} : requiredFieldsOf(resource);
  const { input } = dependentTypesOf(dependent, names);
  const general = bulk === undefined ? "stubs/dependent.ts" : "stubs/bulk-dependent.ts";
  const text = await renderTemplate(hasOwnTemplate ? `stubs/kinds/${template}` : general, {
    Dependent: types.desired.slice(0, -"Desired".length),
    Primary: names.primary,
    Resource: input.slice(0, -inputNameOf("").length),
    Kind: kind,
    controller: names.folder,
    objectName: objectNameOf(dependent, controller),
    item: types.file,
    ...{ app: names.folder, component: workloadOf(dependent, controller).name },
    required: required === undefined ? "(() => { throw new Error() })()" : printLine(required),
  });
  return withOperations(withLabels(withMode(withRequired(text, dependent, required), dependent), dependent), dependent);
}

async function withOperations(text: string, dependent: KubernetesDependentModel): Promise<string> {
  const own = ownOperationsOf(dependent);
  if (own.length === 0) return text;
  const types = dependentNamesOf(dependent);
  const constant = await renderConstant("operations", own, { Operations: types.operations });
  const withTypes = text.replace("import type { ", `import type { ${types.operations}, `);
  return [withTypes.trimEnd(), constant].join("\n\n");
}

/** Renders a constant: the members of several templates, each of which has a part of them. */
async function renderConstant(folder: string, parts: readonly string[], replacements: Replacements): Promise<string> {
  const texts = await Promise.all(parts.map((part) => renderTemplate(`stubs/${folder}/${part}.ts`, replacements)));
  const [first = ""] = texts;
  const members = texts.map((text) => text.slice(text.indexOf("{\n") + 2, text.lastIndexOf("};")));
  return `${first.slice(0, first.indexOf("{\n"))}{\n${members.join("\n")}};`;
}

function withMode(text: string, { mode }: KubernetesDependentModel): string {
  return mode === "createOnly" || mode === "once" ? text.replace("keeps it as returned,", "never updates it,") : text;
}

// Without the labels that its watch asks for it would never be seen.
function withLabels(text: string, { labelSelector = "" }: KubernetesDependentModel): string {
  const labels = labelSelector.split(",").map((each) => /^\s*([^\s!=<>]+)\s*==?\s*([^\s()]*)\s*$/.exec(each)?.slice(1));
  if (!labels.every((each) => each !== undefined)) return text;
  const printed = printLine(Object.fromEntries(labels));
  return text.replace(/metadata: \{ (name\b.*?)(, labels)? \},$/m, (_, name: string, own?: string) =>
    own === undefined
      ? `metadata: { ${name}, labels: ${printed} },`
      : `metadata: { ${name}, labels: { ...labels,${printed.slice(1)} },`,
  );
}

// Text, not a spread: the user is to fill it in.
function withRequired(text: string, { name, resource }: KubernetesDependentModel, required: object | undefined) {
  if (required !== undefined)
    return text.replace(/\.\.\.\{(.*)\},\n/, (_, fields: string) =>
      fields.trim() === "" ? "" : `${fields.trim()},\n`,
    );
  const message = `fill in what the ${resource.kind} "${name}" has to be`;
  return text
    .replace(/\(\{ primary \}\): \w+ => \(\{[^]*\n\}\);/, `() => { throw new Error(${JSON.stringify(message)}); };`)
    .replace(/, \w+ \} from/, " } from");
}

const WORKLOADS = new Set(["Deployment", "StatefulSet", "DaemonSet"]);

/** Returns the dependent whose Pods the labels and selectors of a stub are about: of a Service the workload that it stands in front of. */
function workloadOf(dependent: KubernetesDependentModel, { dependents }: ControllerModel): DependentModel {
  if (dependent.resource.kind !== "Service") return dependent;
  const workloads = dependents.filter((each) => isKubernetes(each) && WORKLOADS.has(each.resource.kind));
  return workloads.findLast(({ name }) => dependent.waitsFor.includes(name)) ?? workloads[0] ?? dependent;
}

/** Returns the smallest values of the fields that an object needs besides its metadata; undefined if there are none. */
export function requiredFieldsOf(resource: ResourceModel): object | undefined {
  const fields = minimalFieldsOf(buildRuntimeSchema(resource));
  if (fields === undefined) return undefined;
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...rest } = fields;
  if (resource.hasStatusSubresource) delete rest["status"];
  return rest;
}

/** Returns the expression for the name of an object: two dependents of one kind must not be one object. */
export function objectNameOf({ name, resource }: KubernetesDependentModel, { dependents }: ControllerModel): string {
  const isAlone = dependents.filter((other) => isKubernetes(other) && other.resource === resource).length === 1;
  return isAlone ? "primary.metadata.name" : `\`\${primary.metadata.name}-${dependentNamesOf({ name }).file}\``;
}

async function renderExternal(dependent: ExternalDependentModel, names: ControllerNames): Promise<string> {
  const types = dependentNamesOf(dependent);
  const { source, type, desiredType, capabilities, isSelected, state, keptType } = dependent.external;
  const isDeclared = type.kind === "declared" && source.kind !== "eventSource";
  // Only of what is declared in the same file are the fields known.
  const form = isDeclared ? "" : "unknown-";
  const wantedForm = desiredType === undefined ? form : "unknown-";
  const idForm = state === undefined ? wantedForm : form;
  const bulk = dependent.bulk === undefined ? "" : "bulk-";
  const fetches = isFetched(dependent);
  const parts = [
    ...(fetches ? [source.kind === "poll" ? "poll" : "perPrimaryPoll"] : []),
    `${idForm}idOf`,
    ...(isSelected === true ? ["isOwn"] : []),
    ...(keptType === undefined ? [] : ["stateOf"]),
    ...(isReadOnly(dependent) ? [] : [`${wantedForm}${bulk}desired`]),
    ...capabilities,
  ];
  const head = `import type { ${types.external} } from "../../generated/${names.folder}/types.js";`;
  const replacements = { name: dependent.name, Primary: names.primary, External: types.external };
  const resource = isDeclared ? [await renderTemplate("stubs/external/resource.ts", replacements)] : [];
  return [head, ...resource, await renderConstant("external", parts, replacements)].join("\n\n");
}

/** Returns the file with the functions that compare, if the spec names any. */
export async function matchersStub({ controller, names }: NamedController): Promise<Stub[]> {
  const used = new Map<string, DependentModel[]>();
  for (const dependent of controller.dependents)
    if (dependent.matcher !== undefined)
      used.set(dependent.matcher, [...(used.get(dependent.matcher) ?? []), dependent]);
  if (used.size === 0) return [];
  const typesOf = (dependents: readonly DependentModel[]) =>
    dependents.map((dependent) => dependentNamesOf(dependent).matcher);
  const texts = await Promise.all(
    [...used].map(([matcher, dependents]) =>
      // One function in several places has to do for each of them.
      renderTemplate("stubs/matcher.ts", {
        matcher,
        Matcher: typesOf(dependents).join(" & "),
        names: dependents.map(({ name }) => name).join(", "),
      }),
    ),
  );
  const imports = [...used.values()].flatMap(typesOf).sort().join(", ");
  const head = `import type { ${imports} } from "../generated/${names.folder}/types.js";`;
  return [{ path: `src/${names.folder}/matchers.ts`, render: async () => [head, ...texts].join("\n\n") }];
}
