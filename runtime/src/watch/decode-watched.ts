import type { ObjectKey } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import { decodeResource, type DecodedResource } from "../decode/decode-resource.js";
import { DeferredDecoder } from "../decode/deferred-decoder.js";
import type { Range } from "../decode/json-scanner.js";
import type { Projection } from "../decode/projection.js";

/** Settings for decoding the objects of a list-watch. */
export interface WatchedDecoding {
  readonly definition: ResourceDefinition;
  /** The field managers whose managed fields are kept. */
  readonly fieldManagers: Iterable<string>;
  /** Cuts the objects. Default: they stay whole. */
  readonly project?: Projection | undefined;
  /** Returns the known state of an object, which mostly equals the next one in large parts. */
  readonly known?: ((key: ObjectKey) => DecodedResource | undefined) | undefined;
}

/** How one object is decoded. */
export interface WatchedRange extends Range {
  /** Whether the object states a type that is not its own, or none: in a list, or where only metadata are sent. */
  readonly lacksType: boolean;
}

/** Decodes the objects of one list-watch; their bytes are changed. */
export class WatchedDecoder {
  readonly #options: WatchedDecoding;
  /** Absent if the objects are cut, for which they are parsed at once. */
  readonly #deferred: DeferredDecoder | undefined;

  constructor(options: WatchedDecoding) {
    this.#options = options;
    this.#deferred = options.project === undefined ? new DeferredDecoder(options) : undefined;
  }

  decode(bytes: Buffer, range: WatchedRange): DecodedResource {
    const { definition, fieldManagers, project } = this.#options;
    const { start, end } = range;
    const entry = this.#deferred?.decode(bytes, range) ?? decodeResource(bytes, { start, end, fieldManagers });
    const { apiVersion, kind } = definition;
    if (range.lacksType) Object.assign(entry.object, { apiVersion, kind });
    // A cut object cannot be compared with a desired one, so that `owned` is of no use.
    return project === undefined ? entry : { object: project(entry.object) };
  }
}
