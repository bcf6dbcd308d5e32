import type { RestStrategy } from "../builtin/rest-strategy.js";
import type { FieldError } from "../errors/field-error.js";
import type { JsonObject } from "../json.js";

/** What defaults need besides the object. */
export interface DefaultingContext {
  /** Absent before the fields are attributed to the writer, to whom nothing that is allocated belongs. */
  allocateClusterIP?: () => string;
  allocateNodePort?: () => number;
  /** Throws for a Service that asks for what it cannot be given. */
  checkAsked?: (spec: JsonObject) => void;
  /** The uid of an object that is being created; absent on updates. */
  uid?: string;
  /** The object before an update; what was allocated to it is kept. */
  old?: JsonObject;
}

/** Sets defaults of one struct in place, by the name of its schema without `io.k8s.api.`. */
export type StructDefaults = { readonly [schemaName: string]: (struct: JsonObject) => void };

/**
 * All that distinguishes one built-in kind, as the strategies in pkg/registry of Kubernetes do. Everything is optional: a kind without a strategy is
 * stored as its schema says. Functions that return nothing change the object in place, and `old` is the object before an update.
 */
export interface Strategy extends Partial<RestStrategy> {
  /** Sets the defaults that depend on the whole object, or on its creation. Idempotent. */
  defaults?(object: JsonObject, context: DefaultingContext): void;
  /** Sets the defaults that depend on other members of the same struct, wherever it stands. */
  structDefaults?: StructDefaults;
  /** Whether a new object gets its defaults again once it has a uid. The default is true for kinds with a status. */
  defaultsOfNew?: boolean;
  /** Whether objects get addresses and ports of the cluster. */
  allocatesAddresses?: boolean;
  /** Drops fields that Kubernetes decodes and forgets: those of disabled features, and those without use. */
  dropFields?(object: JsonObject, old: JsonObject | undefined): void;
  /** Sets what only the server decides in a new object; returns warnings for the client, even if the object is rejected. */
  prepareForCreate?(object: JsonObject): readonly string[] | undefined | void;
  /** Sets what only the server decides in an update through `subresource`, "" for the main endpoint. */
  prepareForUpdate?(object: JsonObject, old: JsonObject, subresource: string): void;
  /** Sets what reading a stored object sets. */
  reread?(object: JsonObject): void;
  /** Validates a new object, or an update through the main endpoint. */
  validate?(object: JsonObject, old: JsonObject | undefined): FieldError[];
  /** Validates an update through /status. */
  validateStatus?(object: JsonObject, old: JsonObject): FieldError[];
  /** Validates an update through another subresource; undefined if `validate` has to do it. */
  validateSubresource?(object: JsonObject, old: JsonObject, subresource: string): FieldError[] | undefined;
  /** Returns the warnings for a write, except one through /status. */
  warnings?(object: JsonObject, old: JsonObject | undefined): readonly string[];
  /** Returns the warnings for a write through /status. */
  statusWarnings?(object: JsonObject): readonly string[];
}
