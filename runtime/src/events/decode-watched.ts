import type { ResourceDefinition } from "../base/resource-definition.js";
import { decodeResource, type DecodedResource } from "../cluster/decode-resource.js";
import type { Range } from "../cluster/json-scanner.js";
import type { Projection } from "../cluster/projection.js";

/** What is made of the objects that a list-watch brings. */
export interface WatchedDecoding {
  readonly definition: ResourceDefinition;
  /** Whose managed fields are kept. */
  readonly fieldManagers: Iterable<string>;
  /** What is kept of the objects; everything unless given. */
  readonly project?: Projection | undefined;
}

/** How one object is decoded. */
export interface WatchedRange extends Range {
  /** Whether the object states a type that is not its own, or none: in a list, or where only metadata are sent. */
  readonly lacksType: boolean;
}

/** Decodes an object of a list or a watch; its bytes are changed. */
export function decodeWatched(
  bytes: Buffer,
  { lacksType, ...range }: WatchedRange,
  { definition, fieldManagers, project }: WatchedDecoding,
): DecodedResource {
  const entry = decodeResource(bytes, { ...range, fieldManagers });
  const { apiVersion, kind } = definition;
  const object = lacksType ? { ...entry.object, apiVersion, kind } : entry.object;
  // Of an object that is not whole nobody can tell what was applied to it.
  if (project !== undefined) return { object: project(object) };
  return lacksType ? { ...entry, object } : entry;
}
