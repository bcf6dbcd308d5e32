import { dependentNamesOf, filterNamesOf, kebabCase } from "../emit/names.js";
import type { ProjectMemory } from "../model/project-memory.js";
import type { ProjectModel } from "../model/project-model.js";

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
export function pendingMoves({ controllers }: ProjectModel, { dependents, stubs }: ProjectMemory): PendingMove[] {
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
