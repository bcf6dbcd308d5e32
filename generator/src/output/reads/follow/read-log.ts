import type { SourcePosition } from "../../../diagnostic.js";
import type { CacheModel } from "../../../model/project-model.js";
import type { FieldPath } from "../../../model/schema/schema-path.js";
import type { TrackedSource } from "./values.js";

/** A field that is read, and where. */
export interface FieldRead {
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
