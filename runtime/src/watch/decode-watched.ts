import type { ObjectKey } from "../base/kubernetes-object.js";
import type { DecodedResource, ManagedWrite } from "../base/decoded-resource.js";
import { decodeResource } from "../decode/decode-resource.js";
import { DeferredDecoder } from "../decode/deferred-decoder.js";
import type { Range } from "../decode/json-scanner.js";
import { compileProjection } from "../cache/projection.js";
import type { ListWatchOptions } from "./list-watch-options.js";

interface WatchedRange extends Range {
  /** Whether the object states a type that is not its own, or none: in a list, or where only metadata are sent. */
  readonly lacksType: boolean;
}

interface WriteObserver {
  /** Called for each object that is decoded whole, with the latest write of the field managers. */
  onWritten?(write: ManagedWrite | undefined): void;
}

/** Returns what decodes the objects of one list-watch, or, without its cache, single ones; their bytes are changed. */
export function createWatchedDecoder(
  options: Pick<ListWatchOptions, "definition" | "fieldManagers" | "projection"> &
    Partial<Pick<ListWatchOptions, "cache">> &
    WriteObserver,
): (bytes: Buffer, range: WatchedRange) => DecodedResource {
  const { definition, projection, fieldManagers, cache, onWritten } = options;
  const { apiVersion, kind } = definition;
  const project = projection && compileProjection(projection);
  // The first list brings nothing that is known.
  const known = (key: ObjectKey) => (cache?.observedVersion === "0" ? undefined : cache?.observed.get(key));
  // Objects that are cut are parsed at once.
  const deferred =
    project === undefined && cache !== undefined ? new DeferredDecoder({ fieldManagers, known }) : undefined;
  return (bytes, range) => {
    const { start, end, lacksType } = range;
    const entry = deferred?.decode(bytes, range) ?? decodeResource(bytes, { start, end, fieldManagers });
    onWritten?.(deferred?.latestWrite);
    if (lacksType) Object.assign(entry.object, { apiVersion, kind });
    // A cut object cannot be compared with a desired one, so that `owned` is of no use.
    return project === undefined ? entry : { object: project(entry.object) };
  };
}
