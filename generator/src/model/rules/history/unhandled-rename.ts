import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { WorkflowSpec } from "../../../input/workflow-spec.js";
import { parseKind } from "../../build/resource-catalog.js";
import type { ResolvedController, ResolvedProject } from "../../build/resolved-project.js";
import { EXTERNAL, type RememberedDependent } from "../../project-memory.js";

/** A controller of the last generation that the project no longer has. */
export interface GoneController {
  readonly name: string;
  /** What it wrote. */
  readonly dependents: readonly RememberedDependent[];
  /** A new controller of the same primaries, which it may have become. */
  readonly successor?: ResolvedController;
}

/** Finds the controllers of the last generation that are gone; a renamed one that its successor lists under `formerNames` is not. */
export function goneControllers({ controllers, memory }: ResolvedProject): GoneController[] {
  const written = memory.dependents.filter(({ isReadOnly }) => isReadOnly !== true);
  const primaries = new Map((memory.controllers ?? []).map(({ name, primary }) => [name, primary]));
  const known = new Set([...primaries.keys(), ...memory.dependents.map(({ controller }) => controller)]);
  const present = new Set(controllers.map(({ spec }) => spec.name));
  const added = controllers.filter(({ spec }) => !known.has(spec.name));
  return [...known]
    .filter((name) => !present.has(name))
    .sort()
    .map((name) => {
      const dependents = written.filter(({ controller }) => controller === name);
      const common = ({ spec }: ResolvedController) =>
        dependents.filter((each) => spec.dependents.has(each.name)).length;
      const primary = primaries.get(name);
      const [successor] = added
        .filter((each) => (primary === undefined ? common(each) > 0 : isOfKind(each, primary)))
        .sort((one, other) => common(other) - common(one));
      return { name, dependents, ...(successor && { successor }) };
    });
}

// A record of an earlier generator has no primary.
function isOfKind({ primary }: ResolvedController, stated: string): boolean {
  const { group, kind } = parseKind(stated);
  return primary?.group === group && primary.kind === kind;
}

/** Finds a controller that has another name than in the last generation, and does not list that name. */
export function checkUnhandledRename(project: ResolvedProject): Diagnostic[] {
  return goneControllers(project).flatMap(({ name, dependents, successor }): Diagnostic[] => {
    if (successor === undefined) return [];
    const { spec } = successor;
    return [
      {
        severity: "error",
        rule: "unhandled-rename",
        message:
          `controller ${quote(name)} was removed, and new controller ${quote(spec.name)} has the same primary: ` +
          `it does not find the objects that are labelled with ${quote(name)}` +
          (dependents.some(({ resource }) => resource === EXTERNAL) ? ", and creates external resources again" : ""),
        ...spec.document.valueAt(["metadata", "name"]),
        hint: [
          `if you renamed it, move src/${name} to src/${spec.name}, and ${pastedName(spec, name)}`,
          `otherwise keep controller ${quote(name)} until its objects are deleted, or, if they can stay, run once: gen-operator generate --forget ${name}`,
        ].join("\n"),
      },
    ];
  });
}

/** Says where the former name is to be pasted: a field that the spec has already must not be there twice. */
function pastedName({ controller, document }: WorkflowSpec, name: string): string {
  if (controller.formerNames !== undefined) return `add to "formerNames" of spec.controller: ${name}`;
  const { spec } = document.value as { readonly spec: object };
  const field = `formerNames: [${name}]`;
  return "controller" in spec ? `add to "controller" of spec:\n  ${field}` : `add to spec:\ncontroller:\n  ${field}`;
}
