import type { SourcePosition } from "../diagnostic.js";
import type { CacheModel, InformerModel } from "../model/project-model.js";
import { type FieldPath, IDENTITY_FIELDS, fieldAt } from "../model/schema.js";

/** A field that is read, and where. */
interface FieldRead {
  readonly path: string;
  readonly position: SourcePosition;
}

/** A part of the primary that is read, and where. */
export interface PrimaryRead {
  readonly path: FieldPath;
  readonly position: SourcePosition;
}

/** What is read of each event source. */
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

  /** Takes that all at a path is needed; the empty path is the whole object. */
  read(source: TrackedSource, path: FieldPath, position: SourcePosition): void {
    if (path.length === 0) {
      if (!this.#escapes.has(source)) this.#escapes.set(source, position);
      return;
    }
    this.#reads.set(source, [...this.readsOf(source), { path: path.join("."), position }]);
  }

  /** Takes that a dependent or an event source is looked at. */
  readMember(name: string, position: SourcePosition): void {
    this.#members.push({ path: name, position });
  }

  /** What of `secondary` is looked at, in the order in which it was found. */
  get members(): readonly FieldRead[] {
    return this.#members;
  }

  /** Takes that all objects of a class are looked at that belong to the primary. */
  readKind(className: string, position: SourcePosition): void {
    this.#kinds.push({ path: className, position });
  }

  /** The classes of which all is looked at, in the order in which that was found. */
  get kinds(): readonly FieldRead[] {
    return this.#kinds;
  }

  /** Takes that all at a path of the result of a workflow is needed. */
  readResult(path: FieldPath): void {
    this.#results.push(path);
  }

  /** Tells whether something of the result of a workflow is read, or something that it is part of. */
  readsResult(path: FieldPath): boolean {
    return this.#results.some((read) => read.every((name, index) => path[index] === name));
  }

  /** Takes that the metadata of the primary at a path is needed; the empty path, or that of the metadata, is all of it. */
  readPrimary(path: FieldPath, position: SourcePosition): void {
    this.#ofPrimary.push({ path, position });
  }

  /** What is read of the primary, in the order in which that was found. */
  get ofPrimary(): readonly PrimaryRead[] {
    return this.#ofPrimary;
  }

  /** Takes that the workflow may be run. */
  invoke(): void {
    this.#isInvoked = true;
  }

  /** Tells whether code may run the workflow. */
  get isInvoked(): boolean {
    return this.#isInvoked;
  }

  /** Notes that all of every event source may be read. */
  readEverything(position: SourcePosition): void {
    for (const source of this.sources) this.read(source, [], position);
  }

  /** Takes that code may look for objects of an event source that belong to no primary, or to another. */
  lookUp(source: TrackedSource, position: SourcePosition): void {
    if (!this.#lookups.has(source)) this.#lookups.set(source, position);
  }

  /** Notes that any object of every event source may be looked up. */
  lookUpEverything(position: SourcePosition): void {
    for (const source of this.sources) this.lookUp(source, position);
  }

  /** Returns where objects of an event source may be looked up; undefined if they never are. */
  lookupOf(source: TrackedSource): SourcePosition | undefined {
    return this.#lookups.get(source);
  }

  /** Returns what is read of an event source, in the order in which it was found. */
  readsOf(source: TrackedSource): readonly FieldRead[] {
    return this.#reads.get(source) ?? [];
  }

  /** Returns where an object is used in a way that may read all of it; undefined if it never is. */
  escapeOf(source: TrackedSource): SourcePosition | undefined {
    return this.#escapes.get(source);
  }

  /** Returns the least that has to be kept of objects that are never used as a whole, and where it is read. */
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

/** An event source that is looked at, and what the user's code calls its things. */
export interface TrackedSource {
  readonly model: InformerModel;
  /** The names of its class. */
  readonly classNames: ReadonlySet<string>;
  /** The name of the type with the kept fields. */
  readonly typeName: string;
}

/** What a piece of the user's code stands for, as far as it matters here. */
export type Value =
  /** The primary, or a part of its metadata. */
  | { readonly kind: "primary"; readonly path: FieldPath }
  /** What the runtime calls a function with. */
  | { readonly kind: "arguments" | "secondary" | "context" | "eventSources" | "resources" | "invocation" }
  /** The result of a workflow, or something inside of it. */
  | { readonly kind: "result"; readonly path: FieldPath }
  /** `context.secondary` or `context.secondaries`. */
  | { readonly kind: "lookup"; readonly isList: boolean }
  | { readonly kind: "list"; readonly of: Value }
  /** An object of an event source, or one inside of it; never something that is kept as a whole. */
  | { readonly kind: "object"; readonly source: TrackedSource; readonly path: FieldPath };

/** What reading a field leads to. */
type Step =
  | { readonly kind: "value"; readonly value: Value }
  /** The field is kept as a whole from here on. */
  | { readonly kind: "read"; readonly path: FieldPath }
  /** Nothing that matters, or fields that are always kept. */
  | { readonly kind: "nothing" }
  /** Nobody can tell what it leads to. */
  | { readonly kind: "unknown" };

const NOTHING: Step = { kind: "nothing" };
const UNKNOWN: Step = { kind: "unknown" };

/** The primary itself. */
export const PRIMARY: Value = { kind: "primary", path: [] };

/** What of a context has nothing to do with event sources. */
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

/** Returns what a field of a value is. */
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

/** The detail of a condition is at `dependents.NAME.conditions.CONDITION.detail`; an item of a bulk dependent has the same as the dependent. */
function stepIntoResult(path: FieldPath, name: string): Step {
  const next = (following: FieldPath): Step => ({ kind: "value", value: { kind: "result", path: following } });
  // Whoever has the function may ask it for any detail.
  if (path.length === 0 && name === "detailOf") return { kind: "read", path };
  const item = itemOf(path);
  if (item !== undefined) return next(item);
  const leadsOn = [name === "dependents", true, name === "conditions" || name === "items", true][path.length];
  if (leadsOn === true) return next([...path, name]);
  return path.length === 4 && name === "detail" ? { kind: "read", path: [...path, name] } : NOTHING;
}

/** What of the metadata changes without a new generation of the primary, and is followed. */
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
  // What has items, values or fields of any name is kept as a whole, and so is a single value.
  return kind === "object"
    ? { kind: "value", value: { kind: "object", source, path: next } }
    : { kind: "read", path: next };
}

/** Returns the path of any item if a path of the result of a workflow leads to the items of a dependent, or else undefined. */
export function itemOf(path: FieldPath): FieldPath | undefined {
  return path.at(-1) === "items" ? path.slice(0, -1) : undefined;
}

/** Returns the object of an event source itself. */
export function rootOf(source: TrackedSource): Value {
  return { kind: "object", source, path: [] };
}

/** Returns a text that is the same for the same value. */
export function keyOfValue(value: Value): string {
  if (value.kind === "list") return `[${keyOfValue(value.of)}]`;
  if (value.kind === "primary") return `primary:${value.path.join(".")}`;
  if (value.kind === "result") return `result:${value.path.join(".")}`;
  if (value.kind === "object") return `${value.source.model.name}:${value.path.join(".")}`;
  return value.kind === "lookup" ? `lookup ${value.isList}` : value.kind;
}
