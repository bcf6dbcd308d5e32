import type ts from "typescript";
import { dependentNamesOf, sourceNamesOf } from "../emit/names.js";
import {
  type ControllerModel,
  type DependentModel,
  type FiltersModel,
  type LocateExpression,
  isKubernetes,
  isReadOnly,
  ownOperationsOf,
} from "../model/project-model.js";
import { loadLibrary } from "../model/typescript.js";
import type { ReadFollower } from "./follow-reads.js";
import { PRIMARY, type TrackedSource, type Value, rootOf } from "./reads.js";
import {
  type CodeFile,
  type FunctionNode,
  type SourceProgram,
  constantOf,
  functionOf,
  isFunctionNode,
  parametersOf,
  resolveFunction,
  takesMore,
} from "./source-program.js";

const compiler = loadLibrary("typescript");

const ARGUMENTS: Value = { kind: "arguments" };
const CONTEXT: Value = { kind: "context" };

/** A user function that the runtime calls, with the values of its arguments. */
interface EntryPoint {
  readonly path: string;
  /** Name of the exported function, or of a member of the exported `constant`. */
  readonly name: string;
  readonly constant?: "external" | "operations" | "source";
  readonly values: readonly (Value | undefined)[];
}

/** The program, and the follower that tracks values through it. */
export interface Followers {
  readonly program: SourceProgram;
  readonly follower: ReadFollower;
}

/** Follows all values that the runtime passes to the code of a controller. */
export function followController(
  controller: ControllerModel,
  { folder, sources }: { readonly folder: string; readonly sources: readonly TrackedSource[] },
  { program, follower }: Followers,
): void {
  for (const entry of entryPointsOf(controller, folder, sources)) {
    const file = program.fileAt(entry.path);
    // A missing file is generated as a stub, which reads nothing.
    if (file === undefined) continue;
    const found = functionAt(entry, file, program);
    if (found === undefined) follower.giveUp(file);
    else bindParameters(found, entry.values, follower);
  }
  followReconciler(folder, { program, follower });
}

/** Returns each expression of a controller as a file with one function that the runtime calls. */
export function expressionFiles(controller: ControllerModel, folder: string, locate: LocateExpression): CodeFile[] {
  return expressionsOf(controller, folder, []).map(({ path, parameters, expression }) => {
    const head = `export const entry = (${parameters}) => (\n`;
    return {
      path,
      text: `${head}${expression.expression}\n);\n`,
      locate: (offset) => locate(expression, Math.max(0, offset - head.length)),
    };
  });
}

function entryPointsOf(controller: ControllerModel, folder: string, sources: readonly TrackedSource[]): EntryPoint[] {
  const { dependents, eventSources } = controller;
  const functionsOf = (filters: FiltersModel) =>
    Object.entries(filters).flatMap(([kind, filter]) =>
      filter.kind === "function" ? [{ name: filter.name, seen: kind === "onUpdate" ? 2 : 1 }] : [],
    );
  return [
    ...expressionsOf(controller, folder, sources).map(entryOf),
    ...dependents.flatMap((dependent) => [...functionsOfDependent(dependent, folder), ...findersOf(dependent, folder)]),
    ...eventSources.flatMap((source): EntryPoint[] => {
      if (source.kind !== "informer") return [];
      const { primaryToSecondary } = source;
      const path = `src/${folder}/event-sources/${sourceNamesOf(source).file}.ts`;
      const naming =
        primaryToSecondary === undefined ? [] : [{ path, name: primaryToSecondary.name, values: [PRIMARY, ARGUMENTS] }];
      const tracked = sources.find(({ model }) => model === source);
      if (tracked === undefined) return naming;
      const values = [rootOf(tracked), rootOf(tracked)];
      return [
        ...naming,
        ...functionsOf(source.filters).map(({ name, seen }) => ({
          path: `src/${folder}/filters.ts`,
          name,
          values: values.slice(0, seen),
        })),
        ...(source.mapping.kind === "function"
          ? [
              {
                path,
                name: source.mapping.name,
                values: values.slice(0, 1),
              },
            ]
          : []),
      ];
    }),
  ];
}

function functionAt({ name, constant }: EntryPoint, file: ts.SourceFile, program: SourceProgram) {
  if (constant === undefined) return functionOf(program.exportOf(file, name), program);
  return membersOf(program.exportOf(file, constant), program).find((member) => member.name === name)?.function;
}

function entryOf({ path, values }: { readonly path: string; readonly values: readonly Value[] }): EntryPoint {
  return { path, name: "entry", values };
}

/** Returns the user functions of one dependent. */
function functionsOfDependent(dependent: DependentModel, folder: string): EntryPoint[] {
  const path = `src/${folder}/dependents/${dependentNamesOf(dependent).file}.ts`;
  const constant = isKubernetes(dependent) ? {} : { constant: "external" as const };
  const conditions = Object.values(dependent.conditions).flatMap((condition) =>
    condition.kind === "function" ? [condition.name] : [],
  );
  return [
    ...(isReadOnly(dependent) ? [] : [{ path, name: "desired", ...constant, values: [ARGUMENTS] }]),
    ...(isKubernetes(dependent) ? [] : dependent.external.capabilities).map((capability) => ({
      path,
      name: capability,
      ...constant,
      // The first arguments are the desired and the live resource.
      values: capability === "update" ? [undefined, undefined, ARGUMENTS] : [undefined, ARGUMENTS],
    })),
    ...(isKubernetes(dependent) ? ownOperationsOf(dependent) : []).map((operation) => ({
      path,
      name: operation,
      constant: "operations" as const,
      values: [ARGUMENTS],
    })),
    ...(dependent.matcher === undefined || !isKubernetes(dependent)
      ? []
      : [{ path: `src/${folder}/matchers.ts`, name: dependent.matcher, values: [undefined, undefined, CONTEXT] }]),
    ...conditions.map((name) => ({ path: `src/${folder}/conditions.ts`, name, values: [ARGUMENTS] })),
  ];
}

// Separate from functionsOfDependent: these functions run before the dependencies are reconciled, so they may not read them.
function findersOf(dependent: DependentModel, folder: string): EntryPoint[] {
  if (isKubernetes(dependent)) return [];
  const { source, isSelected } = dependent.external;
  const fetches = source.kind === "perPrimaryPoll" || (source.kind === "inbound" && source.isFetched === true);
  const external = {
    path: `src/${folder}/dependents/${dependentNamesOf(dependent).file}.ts`,
    constant: "external" as const,
  };
  return [
    ...(fetches ? [{ ...external, name: "fetch", values: [PRIMARY, ARGUMENTS] }] : []),
    ...(isSelected === true ? [{ ...external, name: "isOwn", values: [undefined, PRIMARY] }] : []),
  ];
}

/** Follows the arguments of the functions and expressions of one dependent. A function that cannot be resolved is skipped. */
export function followDependent(
  dependent: DependentModel,
  { controller, folder }: { readonly controller: ControllerModel; readonly folder: string },
  { program, follower }: Followers,
): void {
  const expressions = expressionsOf({ ...controller, dependents: [dependent], eventSources: [] }, folder, []).map(
    entryOf,
  );
  for (const entry of [...expressions, ...functionsOfDependent(dependent, folder)]) {
    const file = program.fileAt(entry.path);
    const found = file === undefined ? undefined : functionAt(entry, file, program);
    if (found !== undefined) bindParameters(found, entry.values, follower);
  }
}

/** Follows the primary through all functions that the runtime calls with it. */
export function followPrimary(controller: ControllerModel, folder: string, { program, follower }: Followers): void {
  const entries = [...entryPointsOf(controller, folder, []), ...sourceFunctionsOf(controller, folder)];
  for (const entry of entries) {
    const file = program.fileAt(entry.path);
    // A missing file is generated as a stub, which reads nothing.
    if (file === undefined) continue;
    const declaration = program.exportOf(file, entry.constant ?? entry.name);
    if (declaration === undefined) continue;
    const isMember = ({ name = entry.name }: Member) => name === entry.name;
    const all =
      entry.constant === undefined ? [{ function: functionOf(declaration, program) }] : membersOf(declaration, program);
    for (const { function: found } of all.filter(isMember))
      if (found !== undefined) bindParameters(found, entry.values, follower);
      else follower.giveUp(declaration);
  }
  followReconciler(folder, { program, follower });
}

/** Returns the functions of event sources that receive the primary. */
function sourceFunctionsOf({ eventSources }: ControllerModel, folder: string): EntryPoint[] {
  return eventSources.flatMap((source): EntryPoint[] => {
    const path = `src/${folder}/event-sources/${sourceNamesOf(source).file}.ts`;
    if (source.kind === "informer") return [];
    const names = source.kind === "poll" ? [] : ["fetch", "isPolled", "intervalOf"];
    return names.map((name) => ({ path, name, constant: "source", values: [PRIMARY] }));
  });
}

/** Follows the arguments of the reconciler of a controller. */
export function followReconciler(folder: string, { program, follower }: Followers): void {
  const file = program.fileAt(`src/${folder}/reconciler.ts`);
  if (file === undefined) return;
  for (const { function: found } of membersOf(program.exportOf(file, "reconciler"), program)) {
    if (found === undefined) follower.giveUp(file);
    else bindParameters(found, [ARGUMENTS], follower);
  }
}

function expressionsOf(controller: ControllerModel, folder: string, sources: readonly TrackedSource[]) {
  const { dependents, eventSources } = controller;
  const conditions = dependents.flatMap(({ name, conditions }) =>
    Object.entries(conditions).flatMap(([kind, condition]) =>
      condition.kind === "when"
        ? [
            {
              path: `spec/${folder}/${name}.${kind}.ts`,
              parameters: `{ ${condition.names.join(", ")} }`,
              values: [ARGUMENTS],
              expression: condition,
            },
          ]
        : [],
    ),
  );
  const ofPrimary = dependents.filter(isKubernetes).flatMap(({ name, ref, again }) =>
    Object.entries({ "ref.name": ref?.name, "ref.namespace": ref?.namespace, again }).flatMap(([part, expression]) =>
      expression?.kind === "when"
        ? [
            {
              path: `spec/${folder}/${name}.${part}.ts`,
              parameters: "{ primary }",
              values: [ARGUMENTS],
              expression,
            },
          ]
        : [],
    ),
  );
  const filters = eventSources.flatMap((source) => {
    if (source.kind !== "informer") return [];
    const tracked = sources.find(({ model }) => model === source);
    const values = tracked === undefined ? [] : [rootOf(tracked), rootOf(tracked)];
    return Object.entries(source.filters).flatMap(([kind, filter]) => {
      if (filter.kind !== "when") return [];
      const parameters = kind === "onDelete" ? "object, isFinalStateUnknown" : "object, old";
      const path = `spec/${folder}/${source.name}.${kind}.ts`;
      return [{ path, parameters, values: kind === "onDelete" ? values.slice(0, 1) : values, expression: filter }];
    });
  });
  return [...conditions, ...ofPrimary, ...filters];
}

/** A member of a user constant. `function` is undefined if it cannot be resolved. */
interface Member {
  readonly name?: string;
  readonly function: FunctionNode | undefined;
}

/** Returns the functions of a constant that is an object literal, such as a reconciler or the functions of an external dependent. */
function membersOf(declaration: ts.Declaration | undefined, program: SourceProgram): Member[] {
  const object = declaration === undefined ? undefined : constantOf(declaration);
  if (object === undefined || !compiler.isObjectLiteralExpression(object)) return [{ function: undefined }];
  return object.properties.map((property) => {
    const found = memberFunctionOf(property, program);
    const { name } = property;
    const isPlain = name !== undefined && (compiler.isIdentifier(name) || compiler.isStringLiteral(name));
    return isPlain ? { name: name.text, function: found } : { function: found };
  });
}

function memberFunctionOf(property: ts.ObjectLiteralElementLike, program: SourceProgram): FunctionNode | undefined {
  if (isFunctionNode(property)) return property;
  if (compiler.isPropertyAssignment(property)) return resolveFunction(property.initializer, program);
  if (compiler.isShorthandPropertyAssignment(property))
    return functionOf(program.declarationOf(property.name), program);
  return undefined;
}

function bindParameters(found: FunctionNode, values: readonly (Value | undefined)[], follower: ReadFollower): void {
  if (takesMore(found)) return follower.giveUp(found);
  const parameters = parametersOf(found);
  for (const [index, value] of values.entries()) {
    const parameter = parameters[index];
    if (parameter !== undefined && value !== undefined) follower.bind(parameter, value);
  }
}
