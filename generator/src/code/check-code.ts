import { CONSTANT_HINT, NEVER } from "../check/conditions.js";
import { CONSTANT_CONDITION } from "../check/rules.js";
import { type Diagnostic, type SourcePosition, formatPosition, positionAfter, quote } from "../diagnostic.js";
import { detailedConditionsOf, isFetched } from "../emit/controller/dependent-types.js";
import { controllerNamesOf, dependentNamesOf, nameResources, sourceNamesOf } from "../emit/names.js";
import { type NamedController, reconcilerPathOf } from "../emit/stubs.js";
import {
  type ConditionName,
  type ControllerModel,
  type DependentModel,
  type LocateExpression,
  type ProjectModel,
  type ResourceModel,
  isKubernetes,
  isReadOnly,
  ownOperationsOf,
} from "../model/project-model.js";
import { loadLibrary } from "../model/typescript.js";
import { expressionFiles, followDependent, followPrimary, followReconciler } from "./entry-points.js";
import { ReadFollower } from "./follow-reads.js";
import { checkChosenNamespaces, checkObjectNames } from "./object-places.js";
import { type PrimaryRead, ReadLog } from "./reads.js";
import { STUB_CONSTANT, UNINVOKED_WORKFLOW, UNORDERED_READ, UNREAD_DETAIL } from "./rules.js";
import {
  type CodeFile,
  type SourceProgram,
  createSourceProgram,
  detailIn,
  functionOf,
  resultOf,
  unlessTooDeep,
} from "./source-program.js";

const compiler = loadLibrary("typescript");

interface Code {
  readonly controller: ControllerModel;
  readonly folder: string;
  readonly program: SourceProgram;
  /** Returns the names that user code can have for the class of a kind. */
  classNamesOf(resource: ResourceModel): readonly string[];
}

/** Results of the analysis of user code. */
export interface CheckedCode {
  readonly diagnostics: readonly Diagnostic[];
  readonly inputs: readonly ControllerInputs[];
}

/** Checks user code, and finds the metadata of primaries that it reads. The checks that follow reads are skipped if a stub lacks its constant. */
export function inspectCode(model: ProjectModel, code: readonly UserFile[], locate: LocateExpression): CheckedCode {
  const misshapen = checkStubs(model, code);
  if (misshapen.length > 0) return { diagnostics: misshapen, inputs: [] };
  const found = unlessTooDeep(
    () => ({ diagnostics: checkCode(model, code, locate), inputs: findInputs(model, code, locate) }),
    "warning",
  );
  return "rule" in found ? { diagnostics: [found], inputs: [] } : found;
}

/**
 * Runs the checks that depend on user code: reads of dependents, unread details, constant conditions, workflow invocation, namespaces, and object
 * names.
 */
export function checkCode(model: ProjectModel, code: readonly CodeFile[], locate: LocateExpression): Diagnostic[] {
  const names = nameResources(model);
  const controllers = model.controllers
    .filter(({ dependents }) => dependents.length > 0)
    .map((controller) => ({ controller, folder: controllerNamesOf(controller, names, model.controllers).folder }));
  const expressions = controllers.flatMap(({ controller, folder }) => expressionFiles(controller, folder, locate));
  const program = createSourceProgram([...code, ...expressions]);
  const all = controllers.map((each) => {
    const local = controllerNamesOf(each.controller, names, model.controllers).resources;
    const classNamesOf = (resource: ResourceModel) => {
      const { className, exportName, localName } = local.get(resource) ?? {};
      return [className, exportName, localName].filter((name) => name !== undefined);
    };
    return { ...each, program, classNamesOf };
  });
  const ofEach = all.flatMap((each) => [
    ...checkUnorderedReads(each),
    ...checkUnreadDetails(each),
    ...checkConstantConditions(each),
    ...checkInvocation(each),
    ...checkChosenNamespaces(each),
  ]);
  return [...ofEach, ...checkObjectNames(all)];
}

/** Warns about reads of dependents that the reader neither waits for nor precedes: the read races with the reconciliation of the dependent. */
function checkUnorderedReads({ controller, folder, program, classNamesOf }: Code): Diagnostic[] {
  const { dependents } = controller;
  return dependents.flatMap((dependent) => {
    const log = new ReadLog([]);
    followDependent(dependent, { controller, folder }, { program, follower: new ReadFollower(program, log) });
    const seen = new Set<DependentModel>();
    const reads = [
      ...log.members.map(({ path, position }) => ({
        others: dependents.filter(({ name }) => name === path),
        position,
      })),
      ...log.kinds.map(({ path, position }) => ({ others: ofClass(path), position })),
    ];
    return reads.flatMap(({ others, position }): Diagnostic[] => {
      const [other] = others;
      if (other === undefined || seen.has(other) || others.some((each) => isInOrder(each, dependent))) return [];
      seen.add(other);
      return [
        {
          ...UNORDERED_READ.violation,
          message: `dependent ${quote(dependent.name)} reads ${quote(other.name)} without depending on it, so ${quote(other.name)} may be missing or outdated`,
          position,
          about: `${controller.name}/${dependent.name}`,
          hint: `in ${controller.specFile}, set on ${quote(dependent.name)}: ${dependsOnWith(other, dependent, dependents)}`,
        },
      ];
    });
  });

  /** Returns the dependents of a class, unless an event source of the same kind also provides its objects. */
  function ofClass(className: string): readonly DependentModel[] {
    const isOfClass = (resource: ResourceModel) => classNamesOf(resource).includes(className);
    const isShared = controller.eventSources.some((each) => each.kind === "informer" && isOfClass(each.resource));
    return isShared ? [] : dependents.filter((each) => isKubernetes(each) && isOfClass(each.resource));
  }
}

/** Returns whether `reader` may read `other` reliably: it is the same dependent, one waits for the other, and so their order is fixed. */
function isInOrder(other: DependentModel, reader: DependentModel): boolean {
  return other === reader || other.follows.includes(reader.name) || reader.follows.includes(other.name);
}

/** Returns the `dependsOn` field to add to the spec. */
function dependsOnWith(other: DependentModel, reader: DependentModel, all: readonly DependentModel[]): string {
  const stated = reader.dependsOn.map((each) => (typeof each === "string" ? each : optionalEdge(each.name)));
  return `dependsOn: [${[...stated, edgeTo(other, reader, all)].join(", ")}]`;
}

/**
 * Returns the edge to suggest. It is optional if `other` or one of its dependencies is conditional: otherwise the reader would be deleted with it.
 */
function edgeTo(other: DependentModel, reader: DependentModel, all: readonly DependentModel[]): string {
  const isConditional = ({ name, conditions }: DependentModel) =>
    [other.name, ...other.waitsFor].includes(name) &&
    !reader.waitsFor.includes(name) &&
    (conditions.activationCondition ?? conditions.reconcilePrecondition) !== undefined;
  return all.some(isConditional) ? optionalEdge(other.name) : other.name;
}

function optionalEdge(name: string): string {
  return `{ name: ${name}, optional: true }`;
}

/** Warns about conditions that return a detail which the reconciler never reads. */
function checkUnreadDetails({ controller, folder, program }: Code): Diagnostic[] {
  const conditions = program.fileAt(`src/${folder}/conditions.ts`);
  // Managed status conditions include the details.
  if (conditions === undefined || controller.settings.statusConditions === "managed") return [];
  const log = new ReadLog([]);
  followReconciler(folder, { program, follower: new ReadFollower(program, log) });
  const uses = detailedConditionsOf(controller).flatMap(({ dependent, conditions: own }) =>
    own.map((each) => ({
      ...each,
      dependent,
      path: ["dependents", dependent, "conditions", each.condition, "detail"],
    })),
  );
  return [...new Set(uses.map((use) => use.function))].flatMap((name): Diagnostic[] => {
    if (uses.some((use) => use.function === name && log.readsResult(use.path))) return [];
    const found = functionOf(program.exportOf(conditions, name), program);
    const detail = found === undefined ? undefined : detailIn(found);
    if (detail === undefined) return [];
    const [use] = uses.filter((each) => each.function === name);
    return [
      {
        ...UNREAD_DETAIL.violation,
        message: `the detail that condition ${quote(name)} returns is never read`,
        about: `${controller.name}/${use!.dependent}`,
        position: program.positionOf(detail),
        hint: `return true or false, or read workflow.${use!.path.join(".")} in the reconciler`,
      },
    ];
  });
}

/** Warns about condition functions that only return false. Returning only true is not reported, since that is what the stub does. */
function checkConstantConditions({ controller, folder, program }: Code): Diagnostic[] {
  const file = program.fileAt(`src/${folder}/conditions.ts`);
  if (file === undefined) return [];
  return controller.dependents.flatMap(({ name, conditions }) =>
    Object.entries(conditions).flatMap(([kind, condition]): Diagnostic[] => {
      const found =
        condition.kind === "function" ? functionOf(program.exportOf(file, condition.name), program) : undefined;
      const result = found === undefined ? undefined : resultOf(found);
      if (result?.kind !== compiler.SyntaxKind.FalseKeyword) return [];
      return [
        {
          ...CONSTANT_CONDITION.violation,
          message: `the condition is never true, so ${NEVER[kind as ConditionName](quote(name))}`,
          about: `${controller.name}/${name}`,
          position: program.positionOf(result),
          hint: CONSTANT_HINT,
        },
      ];
    }),
  );
}

/** Warns about a reconciler that never runs its workflow although `invocation` is explicit. */
function checkInvocation({ controller, folder, program }: Code): Diagnostic[] {
  const file = program.fileAt(`src/${folder}/reconciler.ts`);
  const reconciler = file === undefined ? undefined : program.exportOf(file, "reconciler");
  if (controller.workflow?.invocation !== "explicit" || reconciler === undefined) return [];
  const log = new ReadLog([]);
  followReconciler(folder, { program, follower: new ReadFollower(program, log) });
  if (log.isInvoked) return [];
  return [
    {
      ...UNINVOKED_WORKFLOW.violation,
      message: `the reconciler of controller ${quote(controller.name)} never runs the workflow, and with invocation: explicit only the reconciler runs it`,
      position: program.positionOf(reconciler),
      hint: `call context.workflow.reconcile(), or remove invocation from ${controller.specFile}`,
    },
  ];
}

/** The metadata of primaries that the code of a controller reads. */
export interface ControllerInputs {
  readonly controller: string;
  /** Paths in the format of the runtime, sorted. */
  readonly inputs: readonly string[];
  /** Explains why all labels and annotations are inputs. Absent if every read could be followed. */
  readonly note?: string;
}

const ALL = ["metadata.annotations", "metadata.labels"];
// Keys of labels and annotations (IsQualifiedName in Kubernetes 1.36).
const QUALIFIED_NAME = /^(?:[a-z0-9.-]{1,253}\/)?[A-Za-z0-9](?:[\w.-]{0,61}[A-Za-z0-9])?$/;

/** Finds the metadata of primaries that functions and expressions read. Controllers without such reads are omitted. */
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
  // An input of all labels includes each single label.
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
    `controller ${quote(name)} reconciles on changes of any label or annotation of a ${primary.kind}: ${formatPosition(position)} passes on the ` +
    "whole primary or its metadata, and the reads of it cannot be determined; pass on only the fields that are needed"
  );
}

/** A file of user code. */
interface UserFile {
  readonly path: string;
  readonly text: string;
}

/** A constant that a user file must export. */
interface StubConstant {
  readonly path: string;
  readonly name: "external" | "operations" | "source" | "reconciler";
  readonly type: string;
  /** The owner of the functions, for example `dependent "account"`. */
  readonly owner: string;
  readonly members: readonly string[];
}

/** Reports user files that do not export the constant from which the wiring takes the functions. */
export function checkStubs(model: ProjectModel, code: readonly UserFile[]): Diagnostic[] {
  const names = nameResources(model);
  const files = new Map(code.map((file) => [file.path, file]));
  return model.controllers
    .flatMap((controller) =>
      constantsOf({ controller, names: controllerNamesOf(controller, names, model.controllers) }),
    )
    .flatMap((constant) => {
      const file = files.get(constant.path);
      return file === undefined ? [] : checkFile(file, constant);
    });
}

function constantsOf({ controller, names }: Omit<NamedController, "hasReconciler">): StubConstant[] {
  const { dependents, eventSources } = controller;
  const ofDependents = dependents.flatMap((dependent): StubConstant[] => {
    const types = dependentNamesOf(dependent);
    const path = `src/${names.folder}/dependents/${types.file}.ts`;
    const owner = `dependent ${quote(dependent.name)}`;
    if (isKubernetes(dependent)) {
      const members = ownOperationsOf(dependent);
      return members.length === 0 ? [] : [{ path, name: "operations", type: types.operations, owner, members }];
    }
    const { isSelected, keptType, capabilities } = dependent.external;
    const members = [
      ...(isFetched(dependent) ? ["fetch"] : []),
      "idOf",
      ...(isSelected === true ? ["isOwn"] : []),
      ...(keptType === undefined ? [] : ["stateOf"]),
      ...(isReadOnly(dependent) ? [] : ["desired"]),
      ...capabilities,
    ];
    return [{ path, name: "external", type: types.external, owner, members }];
  });
  const ofSources = eventSources.flatMap((source): StubConstant[] => {
    if (source.kind === "informer") return [];
    const { file, functions: type } = sourceNamesOf(source);
    const members = source.kind === "inbound" ? ["idOf"] : ["fetch", "idOf"];
    const path = `src/${names.folder}/event-sources/${file}.ts`;
    return [{ path, name: "source", type, owner: `event source ${quote(source.name)}`, members }];
  });
  const owner = `controller ${quote(controller.name)}`;
  const reconciler = { path: reconcilerPathOf(names), name: "reconciler", type: names.reconciler, owner } as const;
  return [...ofDependents, ...ofSources, { ...reconciler, members: ["reconcile"] }];
}

// `delete` is a reserved word, so exported functions were named `remove`.
const FORMER_NAMES: { readonly [member: string]: string } = { delete: "remove" };

function checkFile({ path, text }: UserFile, { name, type, owner, members }: StubConstant): Diagnostic[] {
  const exported = exportsOf(text);
  if (exported === undefined || exported.has(name)) return [];
  const alone = members.filter((member) => exported.has(FORMER_NAMES[member] ?? member));
  const fields = members.map((member) => {
    if (!alone.includes(member)) return `${member}: …`;
    const former = FORMER_NAMES[member];
    return former === undefined ? member : `${member}: ${former}`;
  });
  const constant = `export const ${name}: ${type} = { ${fields.join(", ")} };`;
  const offsets = alone.map((member) => exported.get(FORMER_NAMES[member] ?? member) ?? 0);
  const [first] = alone;
  return [
    {
      ...STUB_CONSTANT.violation,
      message:
        first === undefined
          ? `the file must export the constant ${quote(name)} with the functions of ${owner}`
          : `the functions of ${owner} are exported one by one: must be members of one constant ${quote(name)}`,
      position: positionAfter(path, text.slice(0, offsets.length === 0 ? 0 : Math.min(...offsets))),
      hint:
        first === undefined
          ? `add: ${constant}`
          : `remove their "export", give them types such as ${type}["${first}"], and add: ${constant}`,
    },
  ];
}

/** Returns the offsets of the exported values of a file by name; undefined if they cannot be determined without resolving other files. */
function exportsOf(text: string): ReadonlyMap<string, number> | undefined {
  if (/^\s*export\s*(?:\*(?!\s*as\b)|(?:const|let|var)\s*[{[])/m.test(text)) return undefined;
  const names = new Map<string, number>();
  for (const match of text.matchAll(/^export\s+(?:async\s+)?(?:const|let|var|function\*?)\s+([\w$]+)/gm))
    names.set(match[1] ?? "", match.index + match[0].length - (match[1] ?? "").length);
  for (const match of text.matchAll(/^export\s*\{([^}]*)\}/gm))
    for (const each of (match[1] ?? "").split(","))
      names.set(
        each
          .split(/\s+as\s+/)
          .at(-1)
          ?.trim() ?? "",
        match.index,
      );
  return names;
}
