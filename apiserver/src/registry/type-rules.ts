import type { FieldError } from "../errors/field-error.js";
import type { JsonObject } from "../json.js";
import type { MergeType } from "../ssa/type-model.js";

/** What a kind demands of its objects; built-in kinds and custom resources implement it differently. */
export interface TypeRules {
  /** What server-side apply knows about the fields. */
  readonly mergeType: MergeType;
  /**
   * Brings an object into the shape of the kind, in place; returns the paths of fields that are not in it.
   *
   * In what an apply made, nulls stay: they stand for what its manager emptied, and the schema may not allow them.
   */
  decode(object: JsonObject, options?: { keepsNulls: boolean }): string[];
  /** Fills in what the client left out, in place; `live` is what the object replaces. */
  fillDefaults(object: JsonObject, live?: JsonObject): void;
  /** Sets what only the server decides, in place, right before the object is checked and stored; returns what to warn of even if it is refused. */
  finish(
    object: JsonObject,
    live: JsonObject | undefined,
    write: { subresource: string; isDryRun: boolean },
  ): readonly string[] | undefined;
  /** Sets, in place, what reading a written object from the store sets, or leaves out. */
  reread?(object: JsonObject): void;
  /** Checks an object outside its metadata; `live` is what it replaces, and `ofMetadata` what is wrong with its metadata. */
  validate(object: JsonObject, live?: JsonObject, ofMetadata?: readonly FieldError[]): FieldError[];
  /** Checks an object that was written through a subresource that changes a part of it; `undefined` is as `validate`. */
  validatePart?(object: JsonObject, live: JsonObject, subresource: string): FieldError[] | undefined;
  /** Checks an object that was written through /status. */
  validateStatus(object: JsonObject, live: JsonObject): FieldError[];
  /** What an update left as it was though it breaks a rule: told even if the update fails. */
  forgiven?(object: JsonObject): readonly string[];
  /** Returns the warnings that a write of this object causes. */
  warnings(object: JsonObject, live?: JsonObject, subresource?: string): string[];
}
