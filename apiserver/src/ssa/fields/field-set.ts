// A set of field paths, kept as a tree. A path in the set is a member; that `.a.b` is a member says nothing about `.a`.
// Sets never change once built and share subtrees; an empty subtree is always FieldSet.empty.
import { comparePathElements, fieldElement, pathElementText, type PathElement } from "./path-element.js";

/** What a set says about one step: whether the path that ends there is a member, and what is below it. */
export interface FieldEntry {
  readonly isMember: boolean;
  readonly below: FieldSet;
}

/** An immutable set of field paths. */
export class FieldSet {
  static readonly empty: FieldSet = new FieldSet(new Map());
  /** The entry of a path that is a member and has nothing below it. */
  static readonly leaf: FieldEntry = { isMember: true, below: FieldSet.empty };

  readonly entries: ReadonlyMap<PathElement, FieldEntry>;

  private constructor(entries: ReadonlyMap<PathElement, FieldEntry>) {
    this.entries = entries;
  }

  /** Builds a set of plain field paths such as `.metadata.labels`. */
  static of(...paths: string[]): FieldSet {
    const builder = new FieldSetBuilder();
    for (const path of paths) builder.insert(path.split(".").slice(1).map(fieldElement));
    return builder.build();
  }

  /** Builds a set from the entries of its first steps, none of which may be empty. */
  static from(entries: ReadonlyMap<PathElement, FieldEntry>): FieldSet {
    return entries.size === 0 ? FieldSet.empty : new FieldSet(entries);
  }

  /** True if no path is a member. */
  get isEmpty(): boolean {
    return this.entries.size === 0;
  }

  /** True if the path is a member. */
  has(path: readonly PathElement[]): boolean {
    let entry: FieldEntry | undefined;
    let set: FieldSet = FieldSet.empty;
    path.forEach((element, index) => {
      entry = (index === 0 ? this : set).entries.get(element);
      set = entry?.below ?? FieldSet.empty;
    });
    return entry?.isMember ?? false;
  }

  /** Gives the paths that are in this set or in the other. */
  union(other: FieldSet): FieldSet {
    if (this === other || other.isEmpty) return this;
    if (this.isEmpty) return other;
    const entries = new Map(this.entries);
    for (const [element, theirs] of other.entries) {
      const ours = entries.get(element);
      if (ours === undefined) entries.set(element, theirs);
      else if (ours !== theirs) {
        const isMember = ours.isMember || theirs.isMember;
        entries.set(element, { isMember, below: ours.below.union(theirs.below) });
      }
    }
    return new FieldSet(entries);
  }

  /** Gives the paths that are in both sets. */
  intersection(other: FieldSet): FieldSet {
    if (this === other) return this;
    const entries = new Map<PathElement, FieldEntry>();
    for (const [element, ours] of this.entries) {
      const theirs = other.entries.get(element);
      if (theirs === undefined) continue;
      const isMember = ours.isMember && theirs.isMember;
      const below = ours.below.intersection(theirs.below);
      if (isMember || !below.isEmpty) entries.set(element, { isMember, below });
    }
    return FieldSet.from(entries);
  }

  /** Gives the paths of this set that are not in the other; paths below a removed one stay. */
  difference(other: FieldSet): FieldSet {
    return this.without(other, (ours, theirs) => ({
      isMember: ours.isMember && !theirs.isMember,
      below: ours.below.difference(theirs.below),
    }));
  }

  /** Gives the paths of this set that are neither in the other nor below one of its members. */
  differenceWithBelow(other: FieldSet): FieldSet {
    return this.without(other, (ours, theirs) => ({
      isMember: ours.isMember && !theirs.isMember,
      below: theirs.isMember ? FieldSet.empty : ours.below.differenceWithBelow(theirs.below),
    }));
  }

  /** True if both sets have the same members. */
  equals(other: FieldSet): boolean {
    if (this === other) return true;
    if (this.entries.size !== other.entries.size) return false;
    for (const [element, ours] of this.entries) {
      const theirs = other.entries.get(element);
      if (theirs === undefined || ours.isMember !== theirs.isMember || !ours.below.equals(theirs.below)) return false;
    }
    return true;
  }

  /** Lists the steps in Kubernetes' order. */
  sortedElements(): PathElement[] {
    const elements = [...this.entries.keys()];
    return elements.length > 1 ? elements.sort(comparePathElements) : elements;
  }

  /** Lists the members as text such as `.spec.ports[port=80].name`; at each level members come before what is below them. */
  paths(prefix = ""): string[] {
    const elements = this.sortedElements();
    const members = elements.filter((element) => this.entries.get(element)?.isMember);
    return [
      ...members.map((element) => prefix + pathElementText(element)),
      ...elements.flatMap((element) => this.entries.get(element)?.below.paths(prefix + pathElementText(element)) ?? []),
    ];
  }

  private without(other: FieldSet, remaining: (ours: FieldEntry, theirs: FieldEntry) => FieldEntry): FieldSet {
    if (this.isEmpty || other.isEmpty) return this;
    const entries = new Map<PathElement, FieldEntry>();
    let hasChanged = false;
    for (const [element, ours] of this.entries) {
      const theirs = other.entries.get(element);
      const left = theirs === undefined ? ours : remaining(ours, theirs);
      if (left.isMember === ours.isMember && left.below === ours.below) {
        entries.set(element, ours);
        continue;
      }
      hasChanged = true;
      if (left.isMember || !left.below.isEmpty) entries.set(element, left);
    }
    return hasChanged ? FieldSet.from(entries) : this;
  }
}

/** Collects paths into a set. */
export class FieldSetBuilder {
  readonly #root = new Map<PathElement, GrowingEntry>();

  /** Makes the path a member; the empty path is ignored, it is no field. */
  insert(path: readonly PathElement[]): void {
    let level = this.#root;
    path.forEach((element, index) => {
      let entry = level.get(element);
      if (entry === undefined) level.set(element, (entry = { isMember: false, below: new Map() }));
      if (index === path.length - 1) entry.isMember = true;
      level = entry.below;
    });
  }

  /** Gives the set of what was inserted so far. */
  build(): FieldSet {
    return setOf(this.#root);
  }
}

interface GrowingEntry {
  isMember: boolean;
  below: Map<PathElement, GrowingEntry>;
}

function setOf(level: Map<PathElement, GrowingEntry>): FieldSet {
  const entries = new Map<PathElement, FieldEntry>();
  for (const [element, { isMember, below }] of level) entries.set(element, { isMember, below: setOf(below) });
  return FieldSet.from(entries);
}
