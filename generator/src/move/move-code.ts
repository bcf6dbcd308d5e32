import { MOVED_DEPENDENT } from "../check/rules.js";
import { type Diagnostic, quote } from "../diagnostic.js";
import { dependentNamesOf, filterNamesOf, kebabCase } from "../emit/names.js";
import type { OutputFile } from "../emit/output-file.js";
import type { ProjectMemory } from "../model/project-memory.js";
import type { ProjectModel } from "../model/project-model.js";
import type { ProjectFile } from "../read/project-files.js";
import type { WorkflowSpec } from "../read/workflow-spec.js";
import type { FileChange } from "../write/write-files.js";

/** What the user's code is moved by. */
export interface MoveOptions {
  readonly root: string;
  readonly model: ProjectModel;
  readonly memory: ProjectMemory;
  readonly workflows: readonly WorkflowSpec[];
  /** All that is generated now. */
  readonly files: readonly OutputFile[];
  readCode(): Promise<readonly ProjectFile[]>;
}

/** How the user's code follows moved dependents. */
export interface MovedCode {
  readonly changes: readonly FileChange[];
  readonly diagnostics: readonly Diagnostic[];
}

const NOTHING: MovedCode = { changes: [], diagnostics: [] };

/** Returns what changes in the user's code, so that it follows dependents that have another name since the last generation. */
export async function moveCode(options: MoveOptions): Promise<MovedCode> {
  const { root, files } = options;
  const moves = pendingMoves(options.model, options.memory);
  if (moves.length === 0) return NOTHING;
  const code = (await options.readCode()).map(({ file, text }) => ({ path: file, text }));
  if (code.length === 0) return NOTHING;
  // Two compilers are loaded by it.
  const { renameInCode } = await import("./rename-in-code.js");
  // The text of a stub that is there is none that anybody asks for.
  const generated = files
    .filter(({ path, owner }) => owner === "generator" && path.endsWith(".ts"))
    .map((file) => ({ path: file.path, text: file.content }));
  const before = new Map(code.map(({ path, text }) => [path, text]));
  const present = new Map(moves.map(({ stub }) => [stub.from, stub.to]));
  const isLeftOver = (path: string) =>
    [...present].some(([from, to]) => to === path && from !== to && before.has(from));
  const renamed = renameInCode({ root, moves, code: code.filter(({ path }) => !isLeftOver(path)), generated });
  const after = new Map(renamed.map(({ path, text }) => [path, text]));
  const changes = code.flatMap(({ path, text }): FileChange[] => {
    const to = present.get(path);
    if (to !== undefined && to !== path)
      return [
        { path: to, after: after.get(to) ?? text },
        { path, before: text },
      ];
    const now = after.get(path);
    return isLeftOver(path) || now === undefined || now === text ? [] : [{ path, before: text, after: now }];
  });
  // A run that was cut off may have written the moved file, and not have deleted the former one.
  const diagnostics = moves.flatMap((move) => {
    const there = before.get(move.stub.to);
    const isTaken = there !== undefined && before.has(move.stub.from) && move.stub.from !== move.stub.to;
    return isTaken && there !== after.get(move.stub.to) ? [taken(move, options.workflows)] : [];
  });
  return { changes, diagnostics };
}

function taken({ controller, from, stub }: PendingMove, workflows: readonly WorkflowSpec[]): Diagnostic {
  const spec = workflows.find(({ name }) => name === controller);
  const index = spec?.moved.findIndex((each) => each.from === from) ?? -1;
  return {
    ...MOVED_DEPENDENT.violation,
    message: `${stub.from} cannot become ${stub.to}: that file is there already, and is yours`,
    ...(spec === undefined ? {} : spec.document.valueAt(["spec", "moved", index])),
    hint: `move what is needed into one of the two, and delete or rename ${quote(stub.to)}`,
  };
}

/** A dependent that has another name now, and whose code of the user's has the former one. */
export interface PendingMove {
  readonly controller: string;
  readonly from: string;
  readonly to: string;
  /** The folder of the controller below `src` and `src/generated`. */
  readonly folder: string;
  /** The stub before and after. */
  readonly stub: { readonly from: string; readonly to: string };
  /** The names that generated files had for it, with those that they have now. */
  readonly names: ReadonlyMap<string, string>;
}

/** Returns the moves that the user's code does not follow yet: the last generation had the former name. */
function pendingMoves({ controllers }: ProjectModel, { dependents, stubs }: ProjectMemory): PendingMove[] {
  return controllers.flatMap(({ name: controller, dependents: present }) =>
    present.flatMap(({ name: to, movedFrom = [] }) =>
      movedFrom.flatMap((from): PendingMove[] => {
        const folder = kebabCase(controller);
        const { file } = dependentNamesOf({ name: from });
        const isRemembered = dependents.some((each) => each.controller === controller && each.name === from);
        const isWitnessed = stubs.some((stub) => stub.folder === folder && stub.name === file);
        if (!isRemembered && !isWitnessed) return [];
        const pathOf = (name: string) => `src/${folder}/dependents/${dependentNamesOf({ name }).file}.ts`;
        return [
          { controller, from, to, folder, stub: { from: pathOf(from), to: pathOf(to) }, names: namesOf(from, to) },
        ];
      }),
    ),
  );
}

function namesOf(from: string, to: string): ReadonlyMap<string, string> {
  const all = (name: string) => {
    const { name: _name, file: _file, ...types } = dependentNamesOf({ name });
    return [...Object.values(types), ...Object.values(filterNamesOf(name))];
  };
  const after = all(to);
  return new Map(all(from).map((name, index) => [name, after[index] ?? name]));
}
