import { MOVED_DEPENDENT } from "../check/rules.js";
import { type Diagnostic, quote } from "../diagnostic.js";
import { dependentNamesOf, filterNamesOf, kebabCase } from "../emit/names.js";
import type { OutputFile } from "../emit/output-file.js";
import type { ProjectMemory } from "../model/project-memory.js";
import type { ProjectModel } from "../model/project-model.js";
import type { ProjectFile } from "../read/project-files.js";
import type { WorkflowSpec } from "../read/workflow-spec.js";
import type { FileChange } from "../write/write-files.js";

/** Input of {@link moveCode}. */
export interface MoveOptions {
  readonly root: string;
  readonly model: ProjectModel;
  readonly memory: ProjectMemory;
  readonly workflows: readonly WorkflowSpec[];
  /** All emitted files. */
  readonly files: readonly OutputFile[];
  readCode(): Promise<readonly ProjectFile[]>;
}

/** Changes of user code for renamed dependents. */
export interface MovedCode {
  readonly changes: readonly FileChange[];
  readonly diagnostics: readonly Diagnostic[];
}

const NOTHING: MovedCode = { changes: [], diagnostics: [] };

/** Returns the changes of user code for dependents that were renamed since the last generation. */
export async function moveCode(options: MoveOptions): Promise<MovedCode> {
  const { root, files } = options;
  const moves = pendingMoves(options.model, options.memory);
  if (moves.length === 0) return NOTHING;
  const code = (await options.readCode()).map(({ file, text }) => ({ path: file, text }));
  if (code.length === 0) return NOTHING;
  // Load the module only if necessary, because it loads two compilers.
  const { renameInCode } = await import("./rename-in-code.js");
  // Existing stubs have no content, so only include generated files.
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
  // An interrupted run may have written the new file without deleting the former one.
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
    message: `cannot move ${stub.from} to ${stub.to}: the file already exists`,
    ...(spec === undefined ? {} : spec.document.valueAt(["spec", "moved", index])),
    hint: `merge the two files, and delete or rename ${quote(stub.to)}`,
  };
}

/** A renamed dependent whose user code still has the former name. */
export interface PendingMove {
  readonly controller: string;
  readonly from: string;
  readonly to: string;
  /** Folder of the controller below `src` and `src/generated`. */
  readonly folder: string;
  /** Former and new path of the stub. */
  readonly stub: { readonly from: string; readonly to: string };
  /** Former names in generated files, with the names that replace them. */
  readonly names: ReadonlyMap<string, string>;
}

/** Returns the renames that user code does not follow yet, because the last generation had the former name. */
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
