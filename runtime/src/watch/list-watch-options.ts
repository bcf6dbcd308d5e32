import type { Backoff } from "../base/backoff.js";
import type { Clock } from "../base/clock.js";
import type { KubernetesObject, ObjectKey } from "../base/kubernetes-object.js";
import type { ApiRequester } from "../client/requester.js";
import type { Transport } from "../client/transport.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { WatchedDecoding } from "./decode-watched.js";
import type { Restores } from "./restores.js";

/** What a list-watch follows. */
export interface ListWatchOptions extends WatchedDecoding {
  readonly namespace?: string | undefined;
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  readonly shardSelector?: string | undefined;
  /** Whether the server sends only the metadata of the objects. */
  readonly isMetadataOnly?: boolean | undefined;
  readonly transport: Transport;
  readonly requester: ApiRequester;
  /** How long a watch may be quiet before the server is asked whether all is well. Default: 15 s. */
  readonly quietMs?: number | undefined;
  /** How long the server may take to answer that. Default: 8 s. */
  readonly answerTimeoutMs?: number | undefined;
  /** How long an initial list may send nothing before it counts as unsupported. Default: 30 s. */
  readonly initialTimeoutMs?: number | undefined;
  /** Whether versions of this kind can be compared. Default: true. */
  readonly comparesVersions?: boolean | undefined;
  /** The list-watches of the same server, which learn from each other that it was restored. */
  readonly restores?: Restores | undefined;
  readonly backoff?: Backoff;
  readonly clock?: Clock | undefined;
}

/**
 * Notified by a list-watch, in one turn of the event loop per event.
 *
 * The objects of a list come in any order between `beginReplace` and `endReplace`; no other event comes in between. A list that breaks off
 * begins anew.
 */
export interface ListWatchConsumer {
  /** `isRestored` says that the store of the server was restored: the list is older than earlier states, and replaces them. */
  beginReplace(options: { readonly isRestored: boolean }): void;
  /** Takes the key and version of a listed object; returns false if that version is unknown, and has to be decoded. */
  observeKnown(key: ObjectKey, version: string): boolean;
  /** Takes an object from the list. */
  observeListed(entry: DecodedResource): void;
  /** Takes a deletion that happened during the list. */
  forgetListed(object: KubernetesObject): void;
  /** Ends the list, which is as of `version`: objects that it lacks are deleted. */
  endReplace(version: string): void;
  observe(entry: DecodedResource): void;
  /** The server answers a watch: an earlier failure is over. */
  onConnected(): void;
  /** Whether the echoes of own writes are still to come. */
  expectsOwn(): boolean;
  /** Takes the version of an undecoded state; returns true if that state is known from an own write. */
  observeOwn(version: string): boolean;
  observeDeletion(object: KubernetesObject): void;
  observeVersion(version: string): void;
  /** Takes a failure; the next attempt follows after `retryAfterMs`. */
  onFailure(error: unknown, retryAfterMs: number): void;
}

// Such an object states the kind PartialObjectMetadata; the decoder restores its own kind.
/** Asks for the metadata of objects alone. */
export const METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/** Asks for a list of the metadata of objects. */
export const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
