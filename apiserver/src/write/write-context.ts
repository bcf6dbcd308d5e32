import type { Admission } from "../admission/admission.js";
import type { UserInfo } from "../identity/user.js";
import type { JsonObject } from "../json.js";
import type { Registry } from "../registry/registry.js";
import type { ServedResource } from "../registry/served-resource.js";
import type { StoredObject } from "../storage/stored-object.js";

// Who writes what the server writes itself, and its field manager.
const SERVER_USER: UserInfo = { username: "system:apiserver", groups: ["system:masters"] };
const MANAGER = "kube-apiserver";

/** One write: where it goes, who does it and how. */
export interface WriteContext {
  readonly registry: Registry;
  readonly resource: ServedResource;
  readonly namespace: string | undefined;
  /** The field manager; never empty. */
  readonly manager: string;
  /** Who writes. */
  readonly user: UserInfo;
  /** The options of the request as they were given, for who is asked about the write. */
  readonly options: JsonObject;
  readonly isDryRun: boolean;
  readonly fieldValidation: "Ignore" | "Warn" | "Strict";
  /** What is asked before the write is stored; absent in writes of the server itself. */
  readonly admission?: Admission | undefined;
  /** Collects what becomes `Warning` headers. */
  readonly warnings: string[];
  /** Collects what the audit log says of the write besides; the first value of a key counts. */
  readonly auditAnnotations: Map<string, string>;
}

/** What a write leads to. */
export interface WriteResult {
  status: 200 | 201;
  object: StoredObject;
}

/** Returns the context of a write that the server itself makes. */
export function ownContext(registry: Registry, resource: ServedResource, namespace?: string): WriteContext {
  return {
    registry,
    resource,
    namespace,
    manager: MANAGER,
    user: SERVER_USER,
    options: {},
    isDryRun: false,
    fieldValidation: "Ignore",
    warnings: [],
    auditAnnotations: new Map(),
  };
}
