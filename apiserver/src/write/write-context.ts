import type { Admission } from "../admission/admission.js";
import { badRequest, staleResourceVersion } from "../errors/status-error.js";
import type { LongIntegers } from "../exact-numbers.js";
import type { UserInfo } from "../identity/user.js";
import { type JsonObject, objectAt, stringAt } from "../json.js";
import { resourceRefOf } from "../object/object-meta.js";
import { type KnownForms, PendingConversion, runKnowing } from "../pending-conversion.js";
import type { Registry, ServedResource } from "../registry/registry.js";
import type { StoredObject } from "../storage/store.js";

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
  /** Collects the integers of the body that its value has rounded. */
  readonly integers: LongIntegers[];
  /** Collects what becomes `Warning` headers. */
  readonly warnings: string[];
  /** Collects what the audit log says of the write besides; the first value of a key counts. */
  readonly auditAnnotations: Map<string, string>;
}

/** Returns where the object of a write has its long integers from, besides the object before. */
export function sourcesOf({ integers, resource }: WriteContext): readonly LongIntegers[] {
  const { integersOfDefaults } = resource;
  return integersOfDefaults === undefined ? integers : [...integers, integersOfDefaults];
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
    integers: [],
    warnings: [],
    auditAnnotations: new Map(),
  };
}

// As often as kube-apiserver starts a patch over.
const MAX_ATTEMPTS = 5;

/** Says that the stored object changed while a write waited for admission; the write has to be computed again. */
export class OutdatedWrite extends Error {
  override readonly name = "OutdatedWrite";
}

/**
 * Runs a write, again when what it was computed from has changed before it was stored.
 *
 * A write may be left by a PendingConversion until it waits for admission: it runs again when the form is known.
 * A write that waits for nothing runs within one turn, so it is stored before the returned promise can be awaited.
 *
 * @throws a conflict (409) when the last attempt is outdated, too.
 */
export async function attemptWrite<T>(context: WriteContext, name: string, write: () => Promise<T>): Promise<T> {
  // Whoever asks a webhook is often overtaken, and each time somebody else gets on; a real server does not count either.
  const most = context.resource.asksWebhook ? Infinity : MAX_ATTEMPTS;
  const told = context.warnings.length;
  const forms: KnownForms = new Map();
  for (let attempt = 1; ; attempt++) {
    try {
      // No other resource is read here in a form that only a webhook knows.
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

/** Returns a function that hands out `first` once and then what `make` returns: a write changes in place what it is given. */
export function renewable<T>(first: T, make: () => T): () => T {
  let next: T | undefined = first;
  return () => {
    const value = next ?? make();
    next = undefined;
    return value;
  };
}

/** Members that an object does not have, or has twice. */
export interface StrictProblems {
  asWarnings: () => readonly string[];
  /** As a strict request is told of them. Default: as warnings. */
  asErrors?: () => readonly string[];
}

/** Warns of such members; returns those that a strict request fails for. A client may also ask to hear nothing. */
export function tellProblems(
  { fieldValidation, warnings }: WriteContext,
  { asWarnings, asErrors = asWarnings }: StrictProblems,
): readonly string[] {
  if (fieldValidation === "Warn") warnings.push(...asWarnings());
  return fieldValidation === "Strict" ? asErrors() : [];
}

/** Makes the namespace of an object agree with the path; cluster-scoped objects lose theirs. */
export function settleNamespace(metadata: JsonObject, namespace: string | undefined): void {
  if (namespace === undefined) {
    delete metadata["namespace"];
    return;
  }
  checkNamespace(metadata, namespace);
  metadata["namespace"] = namespace;
}

/** Fails for metadata with another namespace than that of the path. */
export function checkNamespace(metadata: JsonObject | undefined, namespace: string | undefined): void {
  const given = stringAt(metadata, "namespace") ?? "";
  if (namespace !== undefined && given !== "" && given !== namespace)
    throw badRequest("the namespace of the provided object does not match the namespace sent on the request");
}

/** Fails for an object with another namespace, or another name, than the path has. */
export function checkPlace({ namespace }: WriteContext, name: string, object: JsonObject): void {
  const metadata = objectAt(object, "metadata");
  checkNamespace(metadata, namespace);
  checkNameOfUrl(stringAt(metadata, "name") ?? "", name);
}

/** Fails for a body whose name is not the one in the path. */
export function checkNameOfUrl(given: string, name: string): void {
  if (given === "") throw nameUndeterminable(name);
  if (given !== name)
    throw badRequest(`the name of the object (${given}) does not match the name on the URL (${name})`);
}

/** Builds the failure of a body that names nothing. */
export function nameUndeterminable(name: string): Error {
  return badRequest(`the name of the object (${name} based on URL) was undeterminable: name must be provided`);
}
