import type { RestStrategy } from "../builtin/rest-strategy.js";
import type { FieldError } from "../errors/field-error.js";
import type { JsonObject } from "../json.js";

/** Context of defaulting. */
export interface DefaultingContext {
  /** Absent while managedFields are computed, so that allocated values get no owner. */
  allocateClusterIP?: () => string;
  allocateNodePort?: () => number;
  /** Throws if a Service requests an address or port that is not available. */
  checkAsked?: (spec: JsonObject) => void;
  /** UID of an object that is being created; absent on update. */
  uid?: string;
  /** The object before an update; its allocated values are kept. */
  old?: JsonObject;
}

/** Set the defaults of a struct, in place, by schema name without the prefix `io.k8s.api.`. */
export type StructDefaults = { readonly [schemaName: string]: (struct: JsonObject) => void };

/**
 * Behavior of a built-in kind, like the strategies in pkg/registry of Kubernetes. All members are optional: a kind without a strategy is stored
 * according to its schema. Functions without a result modify the object in place; `old` is the object before an update.
 */
export interface Strategy extends Partial<RestStrategy> {
  /** Sets defaults that depend on the whole object or on its creation. Idempotent. */
  defaults?(object: JsonObject, context: DefaultingContext): void;
  /** Sets defaults that depend on other fields of the same struct, wherever it occurs. */
  structDefaults?: StructDefaults;
  /** Runs `defaults` again for a new object once it has a UID. Default: true for kinds with a status */
  defaultsOfNew?: boolean;
  /** True if the kind gets cluster IPs and node ports. */
  allocatesAddresses?: boolean;
  /** Drops fields that Kubernetes decodes but does not store: those of disabled features, and unused ones. */
  dropFields?(object: JsonObject, old: JsonObject | undefined): void;
  /** Sets fields of a new object that the server owns; returns warnings, which are sent even if the object is rejected. */
  prepareForCreate?(object: JsonObject): readonly string[] | undefined | void;
  /** Sets fields that the server owns on an update through `subresource`, "" for the main resource. */
  prepareForUpdate?(object: JsonObject, old: JsonObject, subresource: string): void;
  /** Applies what decoding the object from storage changes. */
  reread?(object: JsonObject): void;
  /** Validates a create, or an update of the main resource. */
  validate?(object: JsonObject, old: JsonObject | undefined): FieldError[];
  /** Validates an update of the status subresource. */
  validateStatus?(object: JsonObject, old: JsonObject): FieldError[];
  /** Validates an update of another subresource; returns undefined to use `validate`. */
  validateSubresource?(object: JsonObject, old: JsonObject, subresource: string): FieldError[] | undefined;
  /** Returns the warnings for a write, except to the status subresource. */
  warnings?(object: JsonObject, old: JsonObject | undefined): readonly string[];
  /** Returns the warnings for a write to the status subresource. */
  statusWarnings?(object: JsonObject): readonly string[];
}
