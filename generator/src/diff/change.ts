import type { SourcePosition } from "../diagnostic.js";
import type { ControllerModel, RawSchema } from "../model/project-model.js";
import { ownSchema, schemasOf } from "../model/schema.js";
import type { Crd } from "../read/crd/read-crds.js";
import type { ProjectInput } from "../read/read-project.js";
import type { Place } from "../read/yaml/yaml-document.js";

/** A difference between two states of a project. */
export interface Change {
  /** A breaking change may break stored objects, manifests, or other programs, or deletes running objects. */
  readonly effect: "breaking" | "compatible";
  /** Subject of the change, for example `webpages.example.com v1` or `controller webpage`. */
  readonly subject: string;
  /** Path of the field or dependent; absent if the change concerns the whole subject. */
  readonly path?: string;
  readonly message: string;
  /** Consequence of a breaking change of a CRD. */
  readonly consequence?: Consequence;
  /** The check of crdify for a change of a CRD; `unhandled` if it has none. */
  readonly check?: string;
  /** Position in the current project; absent if the project no longer contains the subject. */
  readonly position?: SourcePosition;
}

/**
 * Consequence of a breaking change of a CRD for objects and their clients:
 *
 * - `newValuesRefused`: the API server rejects new values that violate the schema. Stored objects can still be updated since Kubernetes 1.30.
 * - `everyWriteRefused`: the API server rejects every update of a stored object that violates the schema.
 * - `valuesDropped`: the API server drops stored values.
 * - `readersTypesChange`: an object may have or lack a value in a way that code for the former schema does not expect.
 * - `behaviorChanges`: the same request has another result, or a client no longer finds what it uses.
 * - `unjudged`: no rule covers the change.
 */
export type Consequence =
  "newValuesRefused" | "everyWriteRefused" | "valuesDropped" | "readersTypesChange" | "behaviorChanges" | "unjudged";

/** Optional fields of a change. */
export type ChangeDetails = Pick<Change, "consequence" | "check">;

/** Adds a change of a subject. */
export type AddChange = (effect: Change["effect"], path: string, message: string, details?: ChangeDetails) => void;

/** Returns a function that adds changes of a subject to a list. */
export function collectInto(changes: Change[], subject: string): AddChange {
  return (effect, path, message, details) =>
    void changes.push({ effect, subject, ...(path === "" ? {} : { path }), message, ...details });
}

/** Returns whether the path of a change in a version refers to a part other than its schema. */
export function isVersionPart(path: string): boolean {
  return /^(?:subresources\.|additionalPrinterColumns$)/.test(path);
}

/** The state of a project in which changes are located. */
export interface LocatedState {
  readonly input: Pick<ProjectInput, "crds" | "workflows">;
  /** Controllers of the earlier state. */
  readonly before: readonly ControllerModel[];
}

/** Adds the position of a change: the entry of a spec, or a part of the CRD. */
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
 * Returns the position of a change in a CRD: a field of a version, or its nearest ancestor if the field was removed; the version; a part of the
 * definition at `path`; or its name.
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

/** Returns the path in a schema, as far as it exists, of a field in the notation of changes, such as `spec.ports[].name`. */
function stepsTo(path: string, schema: RawSchema): string[] {
  const into = (keyword: "items" | "additionalProperties", length: number) => {
    const inner = ownSchema(schema, keyword);
    return inner === undefined ? [] : [keyword, ...stepsTo(path.slice(length), inner)];
  };
  if (path.startsWith("[]")) return into("items", 2);
  if (path.startsWith(".*")) return into("additionalProperties", 2);
  const rest = path.replace(/^\./, "");
  // Property names may contain dots, so the longest match wins.
  const [name, field] =
    [...schemasOf(schema, "properties")]
      .filter(([each]) => rest.startsWith(each) && /^(?:$|\.|\[\])/.test(rest.slice(each.length)))
      .sort(([one], [other]) => other.length - one.length)[0] ?? [];
  if (name === undefined || field === undefined) return [];
  return ["properties", name, ...stepsTo(rest.slice(name.length), field)];
}
