// What a mapper looked at among the primaries, so that it is asked again when that changes, and only then.
import { keyFrom, sortedByKey, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import type { ResourceChange } from "../../cache/resource-change.js";
import type { IndexedPrimaries } from "../event-source.js";
import type { MapperContext } from "../mappers.js";

/** The read of all primaries. */
export const ALL_READ = "all";

const NO_READS: readonly string[] = [];
const keyRead = (key: ObjectKey) => `key ${key}`;
const indexRead = (name: string, value: string) => `index ${name} ${value}`;

/** Lets primaries note how they are read. */
export function createPrimaryReads(known: IndexedPrimaries) {
  const indexes = new Set<string>();
  let reads: Set<string> | undefined;
  const noting = <Result>(read: string, result: Result): Result => {
    reads?.add(read);
    return result;
  };
  const readOfIndex = (name: string, value: string) => {
    indexes.add(name);
    return indexRead(name, value);
  };
  /** The primaries to read; what is read of them while `record` runs is noted. */
  const primaries: MapperContext["primaries"] = {
    get: (ref) => noting(keyRead(keyFrom(ref)), known.get(keyFrom(ref))?.object),
    has: (key) => noting(keyRead(key), known.has(key)),
    keys: () => noting(ALL_READ, known.keys()),
    // Not sorted: a mapper may call it for each of many objects.
    list: (options) => noting(ALL_READ, known.list(options)).map(({ object }) => object),
    keysByIndex: (name, value) => noting(readOfIndex(name, value), known.keysByIndex(name, value)),
    byIndex: (name, value) =>
      sortedByKey(noting(readOfIndex(name, value), known.byIndex(name, value)).map(({ object }) => object)),
  };
  return {
    context: { primaries },
    record<Result>(call: () => Result): { readonly result: Result; readonly reads: readonly string[] } {
      const noted = (reads = new Set<string>());
      try {
        const result = call();
        return { result, reads: noted.size === 0 ? NO_READS : [...noted] };
      } finally {
        reads = undefined;
      }
    },
    /** Returns the reads that find a primary in one of these states, but for the read of all. */
    readsOf(key: ObjectKey, states: readonly (KubernetesObject | undefined)[]): readonly string[] {
      const valuesOf = (name: string) =>
        states.flatMap((state) => (state && known.indexFor(name, key)?.valuesOf(state)) ?? []);
      return [keyRead(key), ...[...indexes].flatMap((name) => valuesOf(name).map((value) => indexRead(name, value)))];
    },
  };
}

/** Tells whether a change of a primary causes a reconcile of it anyway: all but edits of its metadata or status do. */
export function isReconciledFor({ kind, object, old }: ResourceChange): boolean {
  const generation = old?.metadata.generation;
  return kind !== "updated" || generation === undefined || generation !== object.metadata.generation;
}
