import type { SourcePosition } from "../diagnostic.js";
import type { CacheModel, InformerModel } from "../model/project-model.js";
import { type FieldPath, IDENTITY_FIELDS, fieldAt } from "../model/schema.js";

/** A field that is read, with the position of the read. */
interface FieldRead {
  readonly path: string;
  readonly position: SourcePosition;
}

/** A part of the primary that is read, with the position of the read. */
export interface PrimaryRead {
  readonly path: FieldPath;
  readonly position: SourcePosition;
}

/** Records the reads of event sources, dependents, workflow results, and the primary. */
export class ReadLog {
  readonly #reads = new Map<TrackedSource, FieldRead[]>();
  readonly #escapes = new Map<TrackedSource, SourcePosition>();
  readonly #lookups = new Map<TrackedSource, SourcePosition>();
  readonly #members: FieldRead[] = [];
  readonly #kinds: FieldRead[] = [];
  readonly #results: FieldPath[] = [];
  readonly #ofPrimary: PrimaryRead[] = [];
  #isInvoked = false;
  readonly sources: readonly TrackedSource[];

  constructor(sources: readonly TrackedSource[]) {
    this.sources = sources;
  }

  /** Records a read of everything at a path. The empty path is the whole object. */
  read(source: TrackedSource, path: FieldPath, position: SourcePosition): void {
    if (path.length === 0) {
      if (!this.#escapes.has(source)) this.#escapes.set(source, position);
      return;
    }
    this.#reads.set(source, [...this.readsOf(source), { path: path.join("."), position }]);
  }

  /** Records a read of a dependent or an event source by its name. */
  readMember(name: string, position: SourcePosition): void {
    this.#members.push({ path: name, position });
  }

  /** Members of `secondary` that are read, in the order of discovery. */
  get members(): readonly FieldRead[] {
    return this.#members;
  }

  /** Records a read of all objects of a class that belong to the primary. */
  readKind(className: string, position: SourcePosition): void {
    this.#kinds.push({ path: className, position });
  }

  /** Classes whose objects are all read, in the order of discovery. */
  get kinds(): readonly FieldRead[] {
    return this.#kinds;
  }

  /** Records a read of everything at a path of the workflow result. */
  readResult(path: FieldPath): void {
    this.#results.push(path);
  }

  /** Returns whether the given path of the workflow result, or a prefix of it, is read. */
  readsResult(path: FieldPath): boolean {
    return this.#results.some((read) => read.every((name, index) => path[index] === name));
  }

  /** Records a read of the primary's metadata. The empty path, or the path of the metadata, is all of it. */
  readPrimary(path: FieldPath, position: SourcePosition): void {
    this.#ofPrimary.push({ path, position });
  }

  /** Reads of the primary, in the order of discovery. */
  get ofPrimary(): readonly PrimaryRead[] {
    return this.#ofPrimary;
  }

  /** Records that the workflow may be run. */
  invoke(): void {
    this.#isInvoked = true;
  }

  /** Whether the code may run the workflow. */
  get isInvoked(): boolean {
    return this.#isInvoked;
  }

  /** Records a read of everything in every event source. */
  readEverything(position: SourcePosition): void {
    for (const source of this.sources) this.read(source, [], position);
  }

  /** Records that code may look up objects of an event source that belong to no primary or to another one. */
  lookUp(source: TrackedSource, position: SourcePosition): void {
    if (!this.#lookups.has(source)) this.#lookups.set(source, position);
  }

  /** Records that any object of every event source may be looked up. */
  lookUpEverything(position: SourcePosition): void {
    for (const source of this.sources) this.lookUp(source, position);
  }

  /** Returns the position of the first lookup of objects of an event source; undefined if there is none. */
  lookupOf(source: TrackedSource): SourcePosition | undefined {
    return this.#lookups.get(source);
  }

  /** Returns the reads of an event source, in the order of discovery. */
  readsOf(source: TrackedSource): readonly FieldRead[] {
    return this.#reads.get(source) ?? [];
  }

  /** Returns the position of the first use that may read a whole object; undefined if there is none. */
  escapeOf(source: TrackedSource): SourcePosition | undefined {
    return this.#escapes.get(source);
  }

  /** Returns the smallest sufficient cache for objects that are never used as a whole, and where its fields are read. */
  neededOf(source: TrackedSource): { readonly cache: CacheModel; readonly reason: string } {
    const reads = this.readsOf(source);
    if (reads.length === 0) return { cache: { kind: "metadata" }, reason: "nothing else is read" };
    const all = [...new Set(reads.map(({ path }) => path))].sort();
    const paths = all.filter((path) => !all.some((other) => path.startsWith(`${other}.`)));
    const places = new Set(
      paths.map((path) => placeOf(reads.find((read) => read.path === path || read.path.startsWith(`${path}.`)))),
    );
    return { cache: { kind: "paths", paths: Object.freeze(paths) }, reason: `read in ${[...places].join(", ")}` };
  }
}

function placeOf(read: FieldRead | undefined): string {
  return read === undefined ? "" : `${read.position.file}:${read.position.line}`;
}

/** An event source whose reads are recorded, with its names in user code. */
export interface TrackedSource {
  readonly model: InformerModel;
  /** Names of its class. */
  readonly classNames: ReadonlySet<string>;
  /** Name of the type with the cached fields. */
  readonly typeName: string;
}

/** What an expression of user code evaluates to, as far as the analysis needs it. */
export type Value =
  /** The primary, or a part of its metadata. */
  | { readonly kind: "primary"; readonly path: FieldPath }
  /** The argument of a user function, or a member of it. */
  | { readonly kind: "arguments" | "secondary" | "context" | "eventSources" | "resources" | "invocation" }
  /** The workflow result, or a part of it. */
  | { readonly kind: "result"; readonly path: FieldPath }
  /** `context.secondary` or `context.secondaries`. */
  | { readonly kind: "lookup"; readonly isList: boolean }
  | { readonly kind: "list"; readonly of: Value }
  /** An object of an event source, or an object nested in it; never a field that is cached as a whole. */
  | { readonly kind: "object"; readonly source: TrackedSource; readonly path: FieldPath };

/** Result of reading a field. */
type Step =
  | { readonly kind: "value"; readonly value: Value }
  /** From here on, the field is cached as a whole. */
  | { readonly kind: "read"; readonly path: FieldPath }
  /** A value that is irrelevant, or a field that is always cached. */
  | { readonly kind: "nothing" }
  /** A value that cannot be determined. */
  | { readonly kind: "unknown" };

const NOTHING: Step = { kind: "nothing" };
const UNKNOWN: Step = { kind: "unknown" };

/** The whole primary. */
export const PRIMARY: Value = { kind: "primary", path: [] };

/** Members of a context that are unrelated to event sources. */
const HARMLESS: ReadonlySet<string> = new Set([
  "signal",
  "client",
  "logger",
  "retry",
  "reasons",
  "isNextReconcileImminent",
  "isPrimaryDeleted",
  "isPrimaryFinalStateUnknown",
  "primaries",
  "attributes",
]);

/** Returns the result of reading a field of a value. */
export function stepInto(value: Value, name: string, sources: readonly TrackedSource[]): Step {
  switch (value.kind) {
    case "arguments":
      if (name === "workflow") return { kind: "value", value: { kind: "result", path: [] } };
      if (name === "primary") return { kind: "value", value: PRIMARY };
      return name === "secondary" || name === "context" ? { kind: "value", value: { kind: name } } : NOTHING;
    case "primary":
      return stepIntoPrimary(value.path, name);
    case "secondary": {
      const source = sources.find(({ model }) => model.name === name);
      return source === undefined ? NOTHING : { kind: "value", value: { kind: "list", of: rootOf(source) } };
    }
    case "context":
      if (name === "secondary" || name === "secondaries")
        return { kind: "value", value: { kind: "lookup", isList: name === "secondaries" } };
      if (name === "workflow") return { kind: "value", value: { kind: "invocation" } };
      if (name === "eventSources" || name === "resources") return { kind: "value", value: { kind: name } };
      return HARMLESS.has(name) ? NOTHING : UNKNOWN;
    case "list":
      return name === "length" ? NOTHING : UNKNOWN;
    case "result":
      return stepIntoResult(value.path, name);
    case "object":
      return stepIntoObject(value.source, value.path, name);
    default:
      return UNKNOWN;
  }
}

/** Details are at `dependents.NAME.conditions.CONDITION.detail`. An item of a bulk dependent has the same structure as its dependent. */
function stepIntoResult(path: FieldPath, name: string): Step {
  const next = (following: FieldPath): Step => ({ kind: "value", value: { kind: "result", path: following } });
  // Code that gets a reference to the function can read any detail with it.
  if (path.length === 0 && name === "detailOf") return { kind: "read", path };
  const item = itemOf(path);
  if (item !== undefined) return next(item);
  const leadsOn = [name === "dependents", true, name === "conditions" || name === "items", true][path.length];
  if (leadsOn === true) return next([...path, name]);
  return path.length === 4 && name === "detail" ? { kind: "read", path: [...path, name] } : NOTHING;
}

/** Follows the metadata that can change without a new generation of the primary. */
function stepIntoPrimary(path: FieldPath, name: string): Step {
  const next = [...path, name];
  if (path.length === 0)
    return name === "metadata" ? { kind: "value", value: { kind: "primary", path: next } } : NOTHING;
  if (path.length > 1) return { kind: "read", path: next };
  if (name === "labels" || name === "annotations") return { kind: "value", value: { kind: "primary", path: next } };
  return name === "ownerReferences" ? { kind: "read", path: next } : NOTHING;
}

function stepIntoObject(source: TrackedSource, path: FieldPath, name: string): Step {
  if (path.length === 0 && IDENTITY_FIELDS.has(name)) return NOTHING;
  const next = [...path, name];
  const { kind } = fieldAt(source.model.resource, next);
  if (kind === "unknown") return UNKNOWN;
  // Lists, maps, objects with unknown fields, and scalars are cached as a whole.
  return kind === "object"
    ? { kind: "value", value: { kind: "object", source, path: next } }
    : { kind: "read", path: next };
}

/** Returns the path of a single item for the path of the items of a dependent in the workflow result; undefined for other paths. */
export function itemOf(path: FieldPath): FieldPath | undefined {
  return path.at(-1) === "items" ? path.slice(0, -1) : undefined;
}

/** Returns the value of a whole object of an event source. */
export function rootOf(source: TrackedSource): Value {
  return { kind: "object", source, path: [] };
}

/** Returns a string that is equal for equal values. */
export function keyOfValue(value: Value): string {
  if (value.kind === "list") return `[${keyOfValue(value.of)}]`;
  if (value.kind === "primary") return `primary:${value.path.join(".")}`;
  if (value.kind === "result") return `result:${value.path.join(".")}`;
  if (value.kind === "object") return `${value.source.model.name}:${value.path.join(".")}`;
  return value.kind === "lookup" ? `lookup ${value.isList}` : value.kind;
}
