// How the data folder is filled: one record for each version of an object under its revision, and what is needed to read them.
import { crc32 } from "node:zlib";

/** The state of all records as of the latest write; a folder whose records do not agree with it has lost some. */
export interface FolderState {
  readonly format: 1;
  readonly revision: number;
  /** How many versions there are, and the sum of their revisions. */
  readonly versions: number;
  readonly sum: number;
}

/** One version of an object; a deletion has no text. */
export interface VersionRecord {
  readonly resource: string;
  readonly key: string;
  readonly json: string | undefined;
}

/** The key of the FolderState. */
export const STATE_KEY = "state";
/** Before the name of a resource: up to which revision its history is gone. */
export const COMPACTED = "compacted/";
/** Before the name of a text that is kept beside the objects. */
export const SECRET = "secret/";
/** Before the revision of a version. */
export const VERSION = "version/";

const REVISION_DIGITS = 16;
const CHECKSUM_DIGITS = 8;

/** Returns the key of the version of a revision; keys are in the order of the revisions. */
export function versionKey(revision: number): string {
  return VERSION + String(revision).padStart(REVISION_DIGITS, "0");
}

/** Writes a version; `json` is the object as text. */
export function versionText({ resource, key, json }: VersionRecord): string {
  return `${JSON.stringify([resource, key])}\n${json ?? ""}`;
}

/** Reads a version. */
export function readVersion(text: string): VersionRecord {
  const end = text.indexOf("\n");
  const [resource, key] = JSON.parse(text.slice(0, end)) as [string, string];
  const json = text.slice(end + 1);
  return { resource, key, json: json === "" ? undefined : json };
}

/** Puts a checksum before a text. */
export function sealed(text: string): string {
  return checksumOf(text) + text;
}

/** Returns the text behind its checksum; undefined if it is not the one that was written. */
export function unsealed(value: string): string | undefined {
  const text = value.slice(CHECKSUM_DIGITS);
  return value.slice(0, CHECKSUM_DIGITS) === checksumOf(text) ? text : undefined;
}

function checksumOf(text: string): string {
  return crc32(text).toString(16).padStart(CHECKSUM_DIGITS, "0");
}
