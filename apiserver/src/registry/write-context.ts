import type { Admission } from "./admission-control.js";
import type { JsonObject } from "../json.js";
import type { Registry } from "./registry.js";
import type { ServedResource } from "./served-resource.js";
import type { StoredObject } from "../storage/stored-object.js";

/** One write: where it goes, who does it and how. */
export interface WriteContext {
  readonly registry: Registry;
  readonly resource: ServedResource;
  readonly namespace: string | undefined;
  /** The field manager; never empty. */
  readonly manager: string;
  /** The options of the request as they were given, for who is asked about the write. */
  readonly options: JsonObject;
  readonly isDryRun: boolean;
  readonly fieldValidation: "Ignore" | "Warn" | "Strict";
  /** What is asked before the write is stored; absent in writes of the server itself. */
  readonly admission?: Admission | undefined;
  /** Collects what becomes `Warning` headers. */
  readonly warnings: string[];
}

/** What a write leads to. */
export interface WriteResult {
  status: 200 | 201;
  object: StoredObject;
}

/** Returns the present time as Kubernetes stores it: UTC in whole seconds. */
export function now(): string {
  return `${new Date().toISOString().slice(0, 19)}Z`;
}
