import type { WatchEnd } from "../base/activity.js";
import type { Backoff, Clock } from "../base/clock.js";
import type { FieldManagers } from "../base/decoded-resource.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ResourceCache } from "../cache/resource-cache.js";
import type { ListOptions } from "../client/call-options.js";
import type { ApiRequester } from "../client/requester.js";
import type { Restores } from "./restores.js";

/** The objects that one list-watch follows. */
export interface InformerScope extends Omit<ListOptions, "signal"> {
  readonly definition: ResourceDefinition;
  /** A hash range of the objects (ShardedListAndWatch, an alpha feature of Kubernetes 1.36). */
  readonly shardSelector?: string | undefined;
  /** Whether the server sends only the metadata of the objects. */
  readonly isMetadataOnly?: boolean | undefined;
  /** The paths that are kept of each object. Default: the whole object. */
  readonly projection?: readonly string[] | undefined;
}

/** What a list-watch follows, and what takes it. */
export interface ListWatchOptions extends InformerScope {
  readonly requester: ApiRequester;
  /** Between `beginReplace` and `endReplace` come the objects of a list, and nothing else. A list that breaks off begins anew. */
  readonly cache: ResourceCache;
  readonly fieldManagers: FieldManagers;
  onListed?(): void;
  /** Called for every piece that a watch brings. */
  onReceived?(): void;
  /** Called when a watch has ended, or could not begin, and another one follows. */
  onEnded?(reason: WatchEnd): void;
  /** Called when the server answers a watch: an earlier failure is over. */
  onConnected?(): void;
  /** Called after a failure; the next attempt follows after `retryAfterMs`. */
  onFailure?(error: unknown, retryAfterMs: number): void;
  /** How long a watch may be quiet before the server is asked whether all is well. Default: 30 s. */
  readonly quietMs?: number | undefined;
  /** How long the server may take to answer that. Default: 8 s. */
  readonly answerTimeoutMs?: number | undefined;
  /** How long an initial list may send nothing before it counts as unsupported. Default: 30 s. */
  readonly initialTimeoutMs?: number | undefined;
  /** The list-watches of the same server, which learn from each other that it was restored. */
  readonly restores?: Restores | undefined;
  readonly backoff?: Backoff;
  readonly clock?: Clock | undefined;
}

/** Asks for the metadata of an object alone. The answer states the kind PartialObjectMetadata; the decoder restores its own kind. */
export const METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
