import {
  isKubernetes,
  isReadOnly,
  kindsOf,
  type BuiltinModel,
  type ConditionModel,
  type ConditionName,
  type ControllerModel,
  type DependentModel,
  type ExternalDependentModel,
  type KubernetesDependentModel,
  type ExpressionModel,
  type NamePartModel,
  type ReferenceModel,
  type ResourceModel,
} from "../../model/project-model.js";
import { CAPABILITIES } from "../../model/dependent-model.js";
import { conditionTypesOf, type ConditionTypeNames } from "../conditions/condition-types.js";
import { conditionsOf } from "../conditions/conditions-of.js";
import { dependentNamesOf, type ControllerNames } from "../controller-names.js";
import { alwaysThere, dependentTypesOf, hasFile, isFetched } from "./dependent-types.js";
import { builtinDoc, builtinValuesOf, kindsIn } from "./builtin-condition.js";
import { importClasses, resourceDoc, untypedValues } from "./class-imports.js";
import { filtersDoc, hasFunctions } from "./filtered.js";
import { isGuarded } from "./guarded-primary.js";
import { generatedFile, type OutputFile } from "../files/output-file.js";
import { callDoc, expressionField, field, fieldsOf, objectDoc, textField } from "../print/code.js";
import { printConstant, printImport, printNamespaceImport } from "../print/declarations.js";
import { hardline, indent, type Doc } from "../print/layout.js";
import { typeDoc } from "../print/print-type.js";
import { printText } from "../print/print-value.js";
import { intersection, reference } from "../print/type-node.js";
import { codegenModule, runtimeModule } from "../runtime-symbols.js";

/** Emits the wiring of a workflow: one chain that declares, in an order in which the dependents can be created. */
export function emitWorkflow(controller: ControllerModel, names: ControllerNames): OutputFile {
  const links = controller.dependents.map((dependent) => linkDoc(dependent, controller, names));
  const chain = links.length > 1 ? indent(links.map((link) => [hardline, link])) : links;
  const workflow = printConstant(names.workflow, [startDoc(controller, names), chain]);
  return generatedFile(`src/generated/${names.folder}/workflow.ts`, [
    importsOf(controller, names).join("\n"),
    ...inboundOf(controller).map((dependent) => printInbound(dependent)),
    `/** What ${names.primary} objects depend on. */\n${workflow}`,
  ]);
}

// The event sources and the items of bulk dependents are there in whatever is called with them.
function startDoc(controller: ControllerModel, names: ControllerNames): Doc {
  const { workflow = {}, removed = [] } = controller;
  const always = alwaysThere(controller, names);
  const types = always.length === 0 ? [] : [names.primary, intersection(...always)];
  const old = removed.map(({ name, resource, ...stated }) =>
    field(name, objectDoc([field("resource", resourceDoc(resource, names)), ...fieldsOf({ ...stated })])),
  );
  const options = [...fieldsOf({ ...workflow }), ...(old.length === 0 ? [] : [field("removed", objectDoc(old))])];
  const start = typeDoc(reference("defineWorkflow", ...types));
  return callDoc(start, [names.primary], options.length === 0 ? undefined : options);
}

function linkDoc(dependent: DependentModel, controller: ControllerModel, names: ControllerNames): Doc {
  const method = !isKubernetes(dependent) ? ".external" : dependent.ref === undefined ? ".dependent" : ".reference";
  const desired = desiredField(dependent, controller);
  const options = isKubernetes(dependent)
    ? objectOptions(dependent, names, desired)
    : externalOptions(dependent, names, desired);
  return [`${method}(${printText(dependent.name)}, `, objectDoc(options, true), ")"];
}

// What the conditions guarantee of the primary is stated where the function is used.
function desiredField(dependent: DependentModel, controller: ControllerModel): Doc[] {
  if (isReadOnly(dependent)) return [];
  const own = `${moduleNameOf(dependent)}.desired`;
  return [textField("desired", isGuarded(dependent, controller) ? `guarded(${own})` : own)];
}

function objectOptions(dependent: KubernetesDependentModel, names: ControllerNames, desired: readonly Doc[]): Doc[] {
  const { ref, namespace, cluster, eventSource, labelSelector, fieldSelector, resource } = dependent;
  const { existing, heldForCleanup, onImmutable, serverSideApply, fieldManager, released } = dependent;
  const filters = filtersDoc(dependent.filters, dependentTypesOf(dependent, names).live);
  const usual = cluster === undefined ? "garbageCollected" : "ordered";
  const deletion = dependent.deletion === usual ? undefined : dependent.deletion;
  const placed = { namespace, cluster, eventSource, labelSelector, fieldSelector, deletion };
  const mode = ref === undefined ? dependent.mode : undefined;
  const stated = {
    ...statedOf(dependent),
    ...{ mode, ...placed, existing, heldForCleanup, onImmutable, serverSideApply, fieldManager, released },
  };
  return [
    field("resource", resourceDoc(resource, names)),
    ...(ref === undefined ? [] : [referenceField(ref)]),
    ...desired,
    ...fieldsOf(stated),
    ...(dependent.again === undefined ? [] : [primaryField("again", dependent.again)]),
    ...(filters === undefined ? [] : [field("filters", filters)]),
    ...(dependent.matcher === undefined ? [] : [textField("matcher", `matchers.${dependent.matcher}`)]),
    ...operationsOf(dependent),
    ...conditionFields(dependent, names),
  ];
}

// Of an expression that sees nothing but the primary.
function primaryField(name: string, { names, expression }: ExpressionModel): Doc {
  return expressionField(name, names.length === 0 ? "()" : "({ primary })", expression);
}

function referenceField({ name, namespace }: ReferenceModel): Doc {
  const partField = (part: string, stated: NamePartModel) => {
    if (stated.kind === "constant") return textField(part, printText(stated.text));
    return primaryField(part, stated);
  };
  const parts = [partField("name", name), ...(namespace === undefined ? [] : [partField("namespace", namespace)])];
  return field(
    "ref",
    objectDoc(
      parts,
      [name, namespace].some((part) => part?.kind === "when"),
    ),
  );
}

function operationsOf(dependent: KubernetesDependentModel): Doc[] {
  const { operations = {} } = dependent;
  const parts = CAPABILITIES.filter((each) => operations[each] !== undefined).map((each) => {
    const own = `${moduleNameOf(dependent)}.operations.${each}`;
    return textField(each, operations[each] === "own" ? own : "false");
  });
  return parts.length === 0 ? [] : [field("operations", objectDoc(parts))];
}

function externalOptions(dependent: ExternalDependentModel, names: ControllerNames, desired: readonly Doc[]): Doc[] {
  const { source, state, keptType, capabilities, isSelected, onDeleteFailure, creationGraceMs } = dependent.external;
  const module = moduleNameOf(dependent);
  const facts = fieldsOf({ ...source, isFetched: undefined });
  if (isFetched(dependent)) facts.push(textField("fetch", `${module}.fetch`));
  if (source.kind === "inbound") facts.push(textField("channel", dependentNamesOf(dependent).source));
  return [
    field("source", objectDoc(facts)),
    textField("idOf", `${module}.idOf`),
    ...(isSelected === true ? [textField("isOwn", `${module}.isOwn`)] : []),
    ...(keptType === undefined ? [] : [textField("stateOf", `${module}.stateOf`)]),
    ...desired,
    ...capabilities.map((capability) => textField(capability, `${module}.${capability}`)),
    ...stateOf(state, names),
    ...fieldsOf({ onDeleteFailure, creationGraceMs, ...statedOf(dependent) }),
    ...(dependent.matcher === undefined ? [] : [textField("matches", `matchers.${dependent.matcher}`)]),
    ...conditionFields(dependent, names),
  ];
}

function stateOf(state: ExternalDependentModel["external"]["state"], names: ControllerNames): Doc[] {
  if (state?.kind !== "resource") return fieldsOf({ state });
  const { resource, ...stated } = state;
  const parts = [...fieldsOf({ ...stated }), field("resource", resourceDoc(resource, names))];
  return [field("state", objectDoc(parts))];
}

function inboundOf({ dependents }: ControllerModel): ExternalDependentModel[] {
  return dependents.flatMap((each) => (!isKubernetes(each) && each.external.source.kind === "inbound" ? [each] : []));
}

// The user's code has to reach it, wherever the operator is made.
function printInbound(dependent: ExternalDependentModel): string {
  const { source, resource } = dependentNamesOf(dependent);
  const doc = `/** Takes what there is of "${dependent.name}" outside of Kubernetes, from whatever brings it. */`;
  return `${doc}\n${printConstant(source, `createInbound<${resource}>()`)}`;
}

/** Returns what any dependent may state, in the words of the runtime. */
function statedOf({ movedFrom, dependsOn, itemsDependOn, bulk, timeoutMs, retry }: DependentModel) {
  return { movedFrom, dependsOn: dependsOn.length > 0 ? dependsOn : undefined, itemsDependOn, bulk, timeoutMs, retry };
}

// A name of its own, so that a dependent called "ready" or "conditions" does not clash with an import.
function moduleNameOf({ name }: { readonly name: string }): string {
  return `${name}Dependent`;
}

function conditionFields(dependent: DependentModel, controllerNames: ControllerNames): Doc[] {
  return conditionsOf(dependent).map(([name, condition]) =>
    condition.kind === "builtin"
      ? field(name, builtinDoc(condition, controllerNames))
      : conditionField(name, condition, conditionTypesOf(dependent, name)),
  );
}

function conditionField(
  name: ConditionName,
  condition: Exclude<ConditionModel, BuiltinModel>,
  types: ConditionTypeNames,
): Doc {
  if (condition.kind === "function") return textField(name, `conditions.${condition.name}`);
  const { names, expression } = condition;
  if (names.length === 0) return expressionField(name, "()", expression);
  // The chain knows the dependents before this one; the named type knows all of them.
  const type = names.includes("secondary") ? `: ${types.arguments}` : "";
  return expressionField(name, `({ ${names.join(", ")} }${type})`, expression);
}

function importsOf(controller: ControllerModel, names: ControllerNames): string[] {
  const { dependents } = controller;
  const all = dependents.flatMap((dependent) =>
    conditionsOf(dependent).map(([name, condition]) => ({
      condition,
      type: conditionTypesOf(dependent, name).arguments,
    })),
  );
  const builtins = new Set(
    all.flatMap(({ condition }) => (condition.kind === "builtin" ? builtinValuesOf(condition) : [])),
  );
  const typed = all.filter(({ condition }) => condition.kind === "when" && condition.names.includes("secondary"));
  const inbound = inboundOf(controller).map(dependentNamesOf);
  const importedTypes = new Set([
    ...inbound.map(({ resource }) => resource),
    ...typed.map(({ type }) => type),
    ...alwaysThere(controller, names),
  ]);
  const user = `../../${names.folder}`;
  const resources = writtenResources(controller);
  const functions = {
    conditions: all.some(({ condition }) => condition.kind === "function"),
    filters: dependents.some((dependent) => isKubernetes(dependent) && hasFunctions(dependent.filters)),
    matchers: dependents.some(({ matcher }) => matcher !== undefined),
  };
  const isAnyGuarded = dependents.some((each) => !isReadOnly(each) && isGuarded(each, controller));
  const values = [...builtins, ...(inbound.length > 0 ? ["createInbound"] : [])].sort();
  return [
    ...(values.length > 0 ? [printImport(values, runtimeModule)] : []),
    printImport(["defineWorkflow", ...(isAnyGuarded ? ["guarded"] : []), ...untypedValues(resources)], codegenModule),
    ...Object.entries(functions).flatMap(([file, isUsed]) =>
      isUsed ? [printNamespaceImport(file, `${user}/${file}.js`)] : [],
    ),
    ...dependents.filter(hasFile).map((dependent) => {
      const module = `${user}/dependents/${dependentNamesOf(dependent).file}.js`;
      const alias = moduleNameOf(dependent);
      return isKubernetes(dependent)
        ? printNamespaceImport(alias, module)
        : printImport([{ name: "external", alias }], module);
    }),
    ...importClasses(resources, names),
    ...(importedTypes.size > 0 ? [printImport([...importedTypes], "./types.js", true)] : []),
  ];
}

/** Returns the kinds that the wiring of a workflow names. */
function writtenResources({ primary, dependents, removed = [] }: ControllerModel): ResourceModel[] {
  const asked = dependents.flatMap((each) =>
    conditionsOf(each).flatMap(([, condition]) => (condition.kind === "builtin" ? kindsIn(condition) : [])),
  );
  return [...new Set([primary, ...dependents.flatMap(kindsOf), ...removed.map(({ resource }) => resource), ...asked])];
}
