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
  /** How long the first objects may take, and the next ones. Default: 30 s. */
  readonly initialTimeoutMs?: number | undefined;
  /** Whether versions of this kind can be compared. Default: true. */
  readonly comparesVersions?: boolean | undefined;
  /** The list-watches of the same server, which are told if it was restored. */
  readonly restores?: Restores | undefined;
  readonly backoff?: Backoff;
  readonly clock?: Clock | undefined;
}

/**
 * What a list-watch calls, always from within one turn of the event loop for one event.
 *
 * The whole state comes object by object, in any order, between `beginReplace` and `endReplace`; nothing else is called in between.
 * If it breaks off, it begins anew.
 */
export interface ListWatchConsumer {
  /** `isRestored` says that the server was restored from a backup: the state is older than what it sent before, and the truth. */
  beginReplace(options: { readonly isRestored: boolean }): void;
  /** Takes that the whole state has this object in this version; tells whether that version is known, so that it is not decoded. */
  observeKnown(key: ObjectKey, version: string): boolean;
  /** Takes an object of the whole state. */
  observeListed(entry: DecodedResource): void;
  /** Takes that an object went while the whole state was on its way. */
  forgetListed(object: KubernetesObject): void;
  /** The whole state as of `version` is complete: what was not in it is gone. */
  endReplace(version: string): void;
  observe(entry: DecodedResource): void;
  /** The server answers a watch: whatever was wrong is over. */
  onConnected(): void;
  /** Whether the states of own writes are still to come. */
  expectsOwn(): boolean;
  /** Whether the state of this version is known already, so that it is not decoded. */
  observeOwn(version: string): boolean;
  observeDeletion(object: KubernetesObject): void;
  observeVersion(version: string): void;
  /** A failure that is going to be retried after `retryAfterMs`. */
  onFailure(error: unknown, retryAfterMs: number): void;
}

// The server says of such an object that it is a PartialObjectMetadata; it is put right when it is decoded.
/** Asks for the metadata of objects alone. */
export const METADATA_OBJECT = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
/** Asks for a list of the metadata of objects. */
export const METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
