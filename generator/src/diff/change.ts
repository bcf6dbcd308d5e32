import type { SourcePosition } from "../diagnostic.js";
import type { ProjectInput } from "../input/read-project.js";
import type { ControllerModel } from "../model/project-model.js";

/** Something that differs between two states of a project. */
export interface Change {
  /** Breaking: stored objects, manifests of users or other programs may stop working, or running objects are deleted. */
  readonly effect: "breaking" | "compatible";
  /** What it is about: `webpages.example.com v1`, `controller webpage`. */
  readonly subject: string;
  /** The field or dependent; absent if it is about the subject as a whole. */
  readonly path?: string;
  readonly message: string;
  /** Where the project says now what the change is about; absent if it says nothing of the subject. */
  readonly position?: SourcePosition;
}

/** Takes note of a change of a subject. */
export type AddChange = (effect: Change["effect"], path: string, message: string) => void;

/** Returns a function that collects the changes of a subject. */
export function collectInto(changes: Change[], subject: string): AddChange {
  return (effect, path, message) => void changes.push({ effect, subject, ...(path === "" ? {} : { path }), message });
}

/** A state of a project, as far as changes are located in it. */
export interface LocatedState {
  readonly input: Pick<ProjectInput, "crds" | "workflows">;
  /** The controllers of the earlier state. */
  readonly before: readonly ControllerModel[];
}

/** Returns a change with the place in the project that it is about: the entry of a spec, or the CRD. */
export function locateChange(change: Change, state: LocatedState): Change {
  const position = positionOf(change, state);
  return position === undefined ? change : { ...change, position };
}

function positionOf({ subject, path }: Change, { input, before }: LocatedState): SourcePosition | undefined {
  const [first = "", second = ""] = subject.split(" ");
  if (first !== "controller")
    return input.crds.find((crd) => `${crd.plural}.${crd.group}` === first)?.placeOf().position;
  const spec = input.workflows.find(({ name }) => name === second);
  if (spec === undefined) return undefined;
  if (path === undefined) return spec.document.valueAt(["metadata", "name"]).position;
  const { dependents = [] } = before.find(({ name }) => name === second) ?? {};
  const isDependent = spec.dependents.has(path) || dependents.some(({ name }) => name === path);
  if (isDependent) return spec.document.keyAt(["spec", "dependents", path]).position;
  if (path === "primary" || path.startsWith("eventSources."))
    return spec.document.keyAt(["spec", ...path.split(".").slice(0, 2)]).position;
  return spec.document.keyAt(["spec", "controller", path.split(".")[0] ?? path]).position;
}
