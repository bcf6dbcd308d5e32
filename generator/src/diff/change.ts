import type { SourcePosition } from "../diagnostic.js";
import type { ControllerModel, RawSchema } from "../model/project-model.js";
import { ownSchema, schemasOf } from "../model/schema.js";
import type { Crd } from "../read/crd/read-crds.js";
import type { ProjectInput } from "../read/read-project.js";
import type { Place } from "../read/yaml/yaml-document.js";

/** Something that differs between two states of a project. */
export interface Change {
  /** Breaking: stored objects, manifests of users or other programs may stop working, or running objects are deleted. */
  readonly effect: "breaking" | "compatible";
  /** What it is about: `webpages.example.com v1`, `controller webpage`. */
  readonly subject: string;
  /** The field or dependent; absent if it is about the subject as a whole. */
  readonly path?: string;
  readonly message: string;
  /** What a breaking change of a CRD does. */
  readonly consequence?: Consequence;
  /** The check of crdify that finds a change of a CRD; `unhandled` if crdify has none for it. */
  readonly check?: string;
  /** Where the project says now what the change is about; absent if it says nothing of the subject. */
  readonly position?: SourcePosition;
}

/**
 * What a breaking change of a CRD does to objects and to those who read them:
 *
 * - `newValuesRefused`: the API server refuses new values that break the schema. Stored objects stay writable since Kubernetes 1.30.
 * - `everyWriteRefused`: the API server refuses every write of a stored object that breaks the schema.
 * - `valuesDropped`: the API server drops stored values.
 * - `readersTypesChange`: an object may have a value, or lack one, that code written for the former schema does not expect.
 * - `behaviorChanges`: the same request has another result, or a client no longer finds what it uses.
 * - `unjudged`: no rule knows what the change does.
 */
export type Consequence =
  "newValuesRefused" | "everyWriteRefused" | "valuesDropped" | "readersTypesChange" | "behaviorChanges" | "unjudged";

/** What is known of a change besides its effect and its message. */
export type ChangeDetails = Pick<Change, "consequence" | "check">;

/** Adds a change of a subject. */
export type AddChange = (effect: Change["effect"], path: string, message: string, details?: ChangeDetails) => void;

/** Returns a function that collects the changes of a subject. */
export function collectInto(changes: Change[], subject: string): AddChange {
  return (effect, path, message, details) =>
    void changes.push({ effect, subject, ...(path === "" ? {} : { path }), message, ...details });
}

/** Tells whether a change of a version is about something beside its schema. */
export function isVersionPart(path: string): boolean {
  return /^(?:subresources\.|additionalPrinterColumns$)/.test(path);
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
  if (first !== "controller") {
    const crd = input.crds.find(({ plural, group }) => `${plural}.${group}` === first);
    return crd && placeInCrd(crd, second, path)?.position;
  }
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

/**
 * Returns where a CRD says now what a change is about: a field of a version, or what is around it if the field is gone; the version; what
 * `path` names of the definition itself; or its name.
 */
function placeInCrd(crd: Crd, versionName: string, path: string | undefined): Place {
  const index = crd.versions.findIndex(({ name }) => name === versionName);
  const version = crd.versions[index];
  if (version === undefined)
    return versionName === "" && path !== undefined ? crd.keyAt(path.split(".")) : crd.placeOf();
  const at = ["spec", "versions", index];
  if (path === undefined) return crd.keyAt([...at, "name"]);
  if (isVersionPart(path)) return crd.keyAt([...at, ...path.split(".")]);
  return crd.keyAt([...at, "schema", "openAPIV3Schema", ...stepsTo(path, version.schema)]);
}

/** Returns the keywords and names that lead to a field as changes name it, such as `spec.ports[].name`, as far as the schema has it. */
function stepsTo(path: string, schema: RawSchema): string[] {
  const into = (keyword: "items" | "additionalProperties", length: number) => {
    const inner = ownSchema(schema, keyword);
    return inner === undefined ? [] : [keyword, ...stepsTo(path.slice(length), inner)];
  };
  if (path.startsWith("[]")) return into("items", 2);
  if (path.startsWith(".*")) return into("additionalProperties", 2);
  const rest = path.replace(/^\./, "");
  // A name may have dots, too: the longest that fits is meant.
  const [name, field] =
    [...schemasOf(schema, "properties")]
      .filter(([each]) => rest.startsWith(each) && /^(?:$|\.|\[\])/.test(rest.slice(each.length)))
      .sort(([one], [other]) => other.length - one.length)[0] ?? [];
  if (name === undefined || field === undefined) return [];
  return ["properties", name, ...stepsTo(rest.slice(name.length), field)];
}
