import type { Admission } from "../admission/admission.js";
import { badRequest, staleResourceVersion } from "../errors/status-error.js";
import type { LongIntegers } from "../exact-numbers.js";
import type { UserInfo } from "../identity/user.js";
import { type JsonObject, objectAt, stringAt } from "../json.js";
import { resourceRefOf } from "../object/object-meta.js";
import { type KnownForms, PendingConversion, runKnowing } from "../pending-conversion.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import type { StoredObject } from "../storage/store.js";

// User and field manager of the API server's own writes.
const SERVER_USER: UserInfo = { username: "system:apiserver", groups: ["system:masters"] };
const MANAGER = "kube-apiserver";

/** Context of a write: the resource, the user, and the options of the request. */
export interface WriteContext {
  readonly registry: Registry;
  readonly resource: ServedResource;
  readonly namespace: string | undefined;
  /** Field manager; never empty. */
  readonly manager: string;
  readonly user: UserInfo;
  /** Request options, for the admission review. */
  readonly options: JsonObject;
  readonly isDryRun: boolean;
  readonly fieldValidation: "Ignore" | "Warn" | "Strict";
  /** Admission plugins, policies, and webhooks; absent for writes of the server itself. */
  readonly admission?: Admission | undefined;
  /** Collects 64-bit integers of the body that lose precision as JavaScript numbers. */
  readonly integers: LongIntegers[];
  /** Collects the values of `Warning` headers. */
  readonly warnings: string[];
  /** Collects annotations for the audit log; the first value of a key is kept. */
  readonly auditAnnotations: Map<string, string>;
}

/** Returns the sources of 64-bit integers of a written object, in addition to the previous object. */
export function sourcesOf({ integers, resource }: WriteContext): readonly LongIntegers[] {
  const { integersOfDefaults } = resource;
  return integersOfDefaults === undefined ? integers : [...integers, integersOfDefaults];
}

export interface WriteResult {
  status: 200 | 201;
  object: StoredObject;
}

/** Returns the context of a write by the server itself. */
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
    integers: [],
    warnings: [],
    auditAnnotations: new Map(),
  };
}

// As often as kube-apiserver retries a patch.
const MAX_ATTEMPTS = 5;

/** The stored object changed while a write was in admission; the write must be computed again. */
export class OutdatedWrite extends Error {
  override readonly name = "OutdatedWrite";
}

/**
 * Runs a write, and retries it if the object has changed before it was stored.
 *
 * Until admission, a write may throw a PendingConversion; it is retried once the form is known. A write that does not wait completes synchronously,
 * so it is stored before the returned promise can be awaited.
 *
 * @throws a conflict (409) if the last attempt is outdated as well.
 */
export async function attemptWrite<T>(context: WriteContext, name: string, write: () => Promise<T>): Promise<T> {
  // Conversion webhooks are slow, so conflicts are frequent, but each one means that another write has succeeded. kube-apiserver does not limit these
  // retries either.
  const most = context.resource.asksWebhook ? Infinity : MAX_ATTEMPTS;
  const told = context.warnings.length;
  const forms: KnownForms = new Map();
  for (let attempt = 1; ; attempt++) {
    try {
      // The write reads no other resource that needs a conversion webhook.
      return await (context.resource.asksWebhook ? runKnowing(forms, write) : write());
    } catch (error) {
      if (error instanceof PendingConversion) {
        await error.ask(forms);
        attempt--;
        context.warnings.length = told;
        continue;
      }
      if (!(error instanceof OutdatedWrite)) throw error;
      if (attempt === most) throw staleResourceVersion(resourceRefOf(context.resource.type, name));
      context.warnings.length = told;
    }
  }
}

/** Returns a function that returns `first` once and then calls `make`, because a write modifies its input. */
export function renewable<T>(first: T, make: () => T): () => T {
  let next: T | undefined = first;
  return () => {
    const value = next ?? make();
    next = undefined;
    return value;
  };
}

/** Unknown and duplicate fields. */
export interface StrictProblems {
  asWarnings: () => readonly string[];
  /** Messages for strict validation. Default: asWarnings */
  asErrors?: () => readonly string[];
}

/** Adds warnings with fieldValidation Warn; returns errors with Strict, and nothing with Ignore. */
export function tellProblems(
  { fieldValidation, warnings }: WriteContext,
  { asWarnings, asErrors = asWarnings }: StrictProblems,
): readonly string[] {
  if (fieldValidation === "Warn") warnings.push(...asWarnings());
  return fieldValidation === "Strict" ? asErrors() : [];
}

/** Sets the namespace of an object to that of the path; removes it for cluster-scoped objects. */
export function setNamespace(metadata: JsonObject, namespace: string | undefined): void {
  if (namespace === undefined) {
    delete metadata["namespace"];
    return;
  }
  checkNamespace(metadata, namespace);
  metadata["namespace"] = namespace;
}

/** Throws if the namespace in the metadata differs from that of the path. */
export function checkNamespace(metadata: JsonObject | undefined, namespace: string | undefined): void {
  const given = stringAt(metadata, "namespace") ?? "";
  if (namespace !== undefined && given !== "" && given !== namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
}

/** Throws if the namespace or name of an object differs from that of the path. */
export function checkPlace({ namespace }: WriteContext, name: string, object: JsonObject): void {
  const metadata = objectAt(object, "metadata");
  checkNamespace(metadata, namespace);
  checkNameOfUrl(stringAt(metadata, "name") ?? "", name);
}

/** Throws if the name of an object is absent or differs from that of the path. */
export function checkNameOfUrl(given: string, name: string): void {
  if (given === "") throw nameUndeterminable(name);
  if (given !== name)
    throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
}

/** Builds the error for an object without a name. */
export function nameUndeterminable(name: string): Error {
  return badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
}
