import type { Diagnostic } from "../../diagnostic.js";
import { quote } from "../../diagnostic.js";
import { loadLibrary } from "../../model/expression/library.js";
import {
  isKubernetes,
  type ConditionName,
  type ControllerModel,
  type DependentModel,
  type LocateExpression,
  type ProjectModel,
  type ResourceModel,
} from "../../model/project-model.js";
import { NEVER } from "../../model/rules/conditions/constant-condition.js";
import { controllerNamesOf } from "../controller-names.js";
import { detailedConditionsOf } from "../controller/dependent-types.js";
import { nameResources } from "../resource/resource-name.js";
import { expressionFiles, followDependent, followReconciler } from "./follow/entry-points.js";
import { ReadFollower } from "./follow/follow-reads.js";
import { functionOf, resultOf } from "./code/functions.js";
import { checkChosenNamespaces } from "./chosen-namespaces.js";
import { checkObjectNames } from "./object-names.js";
import { ReadLog } from "./follow/read-log.js";
import { detailIn } from "./code/returned-objects.js";
import { createSourceProgram, type CodeFile, type SourceProgram } from "./code/source-program.js";

const compiler = loadLibrary("typescript");

interface Code {
  readonly controller: ControllerModel;
  readonly folder: string;
  readonly program: SourceProgram;
  /** Returns the names that the class of a kind has in code. */
  classNamesOf(resource: ResourceModel): readonly string[];
}

/** Checks what only the user's code shows: which dependents are read, which details are not, and which objects are written. */
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

/** Warns of reads of dependents that a dependent does not wait for: what it finds depends on luck. */
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
          severity: "warning",
          rule: "unordered-read",
          message: `dependent ${quote(dependent.name)} reads ${quote(other.name)} without depending on it, so ${quote(other.name)} may be missing or outdated`,
          position,
          about: `${controller.name}/${dependent.name}`,
          hint: `in ${controller.specFile} give ${quote(dependent.name)}: ${dependsOnWith(other, dependent, dependents)}`,
        },
      ];
    });
  });

  /** Returns the dependents of a class, if the objects of that are theirs alone. */
  function ofClass(className: string): readonly DependentModel[] {
    const isOfClass = (resource: ResourceModel) => classNamesOf(resource).includes(className);
    const isShared = controller.eventSources.some((each) => each.kind === "informer" && isOfClass(each.resource));
    return isShared ? [] : dependents.filter((each) => isKubernetes(each) && isOfClass(each.resource));
  }
}

/** Tells whether one dependent may read another: it is the same, is waited for, or waits itself, so that it can only be as it was before. */
function isInOrder(other: DependentModel, reader: DependentModel): boolean {
  return other === reader || other.follows.includes(reader.name) || reader.follows.includes(other.name);
}

/** Returns the `dependsOn` to advise, to be copied into the spec. */
function dependsOnWith(other: DependentModel, reader: DependentModel, all: readonly DependentModel[]): string {
  const stated = reader.dependsOn.map((each) => (typeof each === "string" ? each : optionalEdge(each.name)));
  return `dependsOn: [${[...stated, edgeTo(other, reader, all)].join(", ")}]`;
}

/** Returns the edge to advise: what depends on something that may not be wanted must not be deleted with it. */
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

/** Warns of conditions that find more than whether they hold, where the reconciler does not look at it. */
function checkUnreadDetails({ controller, folder, program }: Code): Diagnostic[] {
  const conditions = program.fileAt(`src/${folder}/conditions.ts`);
  // What the runtime says in status conditions are details, too.
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
        severity: "warning",
        rule: "unread-detail",
        message: `no code reads the detail that condition ${quote(name)} returns`,
        about: `${controller.name}/${use!.dependent}`,
        position: program.positionOf(detail),
        hint: `return true or false, or read workflow.${use!.path.join(".")} in the reconciler`,
      },
    ];
  });
}

/** Warns of functions of conditions that return false and nothing else; what always holds is how a condition begins that is still to be written. */
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
          severity: "warning",
          rule: "constant-condition",
          message: `the condition never holds, so ${NEVER[kind as ConditionName](quote(name))}`,
          about: `${controller.name}/${name}`,
          position: program.positionOf(result),
        },
      ];
    }),
  );
}

/** Warns of a reconciler that never runs the workflow, where nothing else does. */
function checkInvocation({ controller, folder, program }: Code): Diagnostic[] {
  const file = program.fileAt(`src/${folder}/reconciler.ts`);
  const reconciler = file === undefined ? undefined : program.exportOf(file, "reconciler");
  if (controller.workflow?.invocation !== "explicit" || reconciler === undefined) return [];
  const log = new ReadLog([]);
  followReconciler(folder, { program, follower: new ReadFollower(program, log) });
  if (log.isInvoked) return [];
  return [
    {
      severity: "warning",
      rule: "uninvoked-workflow",
      message: `the reconciler of the controller ${quote(controller.name)} never runs the workflow, and with invocation: explicit nothing else does`,
      position: program.positionOf(reconciler),
      hint: `call context.workflow.reconcile(), or remove invocation from ${controller.specFile}`,
    },
  ];
}
