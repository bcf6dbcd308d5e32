import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { JsonObject, JsonValue } from "@gen-operator/schema";
import {
  type DecodedResource,
  type ObjectBody,
  type ObjectRef,
  type OwnedFields,
  type ResourceDefinition,
  describeObject,
  keyOf,
  ownedBy,
} from "../base/kubernetes-object.js";
import { hasLink } from "../base/primary-link.js";
import { type Clock, systemClock } from "../base/wait.js";
import type { ResourceView } from "../cache/resource-view.js";
import { type FieldPath, type LeftField, findLeftBehind, resolveField } from "./field-set.js";
import { genericDifferences } from "./generic-matcher.js";
import {
  type Difference,
  type MatchOptions,
  findDifferences,
  hasForeignChange,
  isEmptyValue,
  isPlain,
  matches,
  plainOf,
} from "./match.js";
import {
  type FieldNode,
  type FieldsV1,
  NOTHING,
  type SchemaNode,
  extractOwned,
  isLeaf,
  keyOfListItem,
  parseOwnedFields,
  schemaOf,
  valueKeyOf,
} from "./owned-fields.js";
import { type Write, type WritePart, type WriteTarget, storedPart } from "./write.js";

/** The maximum number of differences in a message or a write loop. */
export const NAMED_DIFFERENCES = 10;
/** How long a known server-side mutation is accepted. Messages say "10m". */
const MUTATION_MS = 600_000;
const ABSENT: Difference = { path: "", reason: "does not exist" };
const UNOWNED: Difference = { path: "", reason: "was not applied by this controller in this version" };

/** Compares the applies of one field manager with live objects, and learns from responses which values the API server mutates. */
export class ApplyMatcher {
  readonly #fieldManager: string;
  readonly mutations: ServerMutations;

  constructor(fieldManager: string, clock?: Clock) {
    this.#fieldManager = fieldManager;
    this.mutations = new ServerMutations(clock);
  }

  /** Returns whether an apply would change nothing. `part` determines which managed fields are compared. */
  matches(write: Write, live: DecodedResource | undefined, part = storedPart(write)): boolean {
    if (live === undefined) return false;
    const { desired, target } = write;
    const applied = this.#appliedState(target.definition, part, live);
    if (applied === undefined) {
      // An apply that contains only empty lists owns no fields.
      const isApplied = this.ownedFields(live, part) !== undefined;
      const bare = { owned: NOTHING, schema: schemaOf(target.definition) };
      return !isApplied && matchesAsJson(desired, live.object as never, bare);
    }
    if (matchesAsJson(desired, live.object as never, applied)) return true;
    return this.mutations.isKnown(write, () => mutationOf(desired, live, applied));
  }

  /** Learns from the response to an apply whether and how the API server mutated the object. */
  learn(write: Write, answer: DecodedResource): void {
    const { verb, desired, target } = write;
    const { definition } = target;
    const part = storedPart(write);
    const applied = verb === "apply" ? this.#appliedState(definition, part, answer) : undefined;
    if (applied === undefined) return;
    if (matchesAsJson(desired, answer.object as never, applied))
      return this.mutations.forget(target.cache, write.ref, [part]);
    // An object that was stored without its link is an error, not a mutation to accept.
    if (!hasLink(answer.object.metadata, (desired as ObjectBody).metadata)) return;
    // Without a schema, field ownership cannot be determined, so only the values are compared.
    const isUntyped = Object.keys(definition.schema).length === 0;
    const differences = isUntyped
      ? genericDifferences({ definition, desired, live: answer.object }).slice(0, NAMED_DIFFERENCES)
      : this.differences(write, answer, NAMED_DIFFERENCES);
    this.mutations.learn(write, mutationOf(desired, answer, applied), differences);
  }

  /** Returns at most `limit` differences because of which an apply would change the object. */
  differences(write: Write, live: DecodedResource | undefined, limit: number): readonly Difference[] {
    if (live === undefined) return [ABSENT];
    const { definition } = write.target;
    const { desired } = write;
    const applied = this.#appliedState(definition, storedPart(write), live);
    if (applied !== undefined)
      return findDifferences(plainOf(desired) as JsonObject, live.object as never, { ...applied, limit });
    // Another client has taken over all fields that we owned. The values still show which ones it changed.
    const found = genericDifferences({ definition, desired, live: live.object }).slice(0, limit);
    return found.length > 0 ? found : [UNOWNED];
  }

  /** Returns the fields that an apply no longer contains but that have the same value after it. */
  leftBehind(write: Write, after: DecodedResource): readonly LeftField[] {
    const { verb, target, desired, before } = write;
    if (verb !== "apply" || before === undefined) return [];
    const part = storedPart(write);
    const [owned, owns] = [before, after].map((entry) => this.ownedFields(entry, part));
    if (owned === undefined || owned.fieldsV1 === owns?.fieldsV1) return [];
    const fieldsOf = (fields: OwnedFields | undefined) => fields && (JSON.parse(fields.fieldsV1) as FieldsV1);
    const sets = { before: fieldsOf(owned), after: fieldsOf(owns), schema: schemaOf(target.definition) };
    const left = findLeftBehind(after.object as unknown as JsonValue, plainOf(desired)!, sets);
    // If a default has replaced another value, the field was removed.
    const valueBefore = (fields: FieldPath) => resolveField(before.object as unknown as JsonValue, fields)?.value;
    return left.filter(({ fields, value }) => isDeepStrictEqual(value, valueBefore(fields)));
  }

  /** Returns whether an apply changed the object, and only in fields that it owns. */
  isOwn(write: Write, before: DecodedResource, after: DecodedResource): boolean {
    if (before.object.metadata.resourceVersion === after.object.metadata.resourceVersion) return false;
    const part = storedPart(write);
    const fields = [before, after].flatMap((entry) => this.ownedFields(entry, part) ?? []);
    const owned = fields.map(({ fieldsV1 }) => parseOwnedFields(fieldsV1));
    return !hasForeignChange(before.object, after.object, { owned, schema: schemaOf(write.target.definition) });
  }

  /** Returns digests of the applied fields and of their values, or undefined if no field is applied. */
  digestsOf(
    { definition }: WriteTarget,
    part: WritePart,
    entry: DecodedResource,
  ): { readonly fields: string; readonly values: string } | undefined {
    const applied = this.#appliedState(definition, part, entry);
    if (applied === undefined) return undefined;
    const digest = (text: string) => hash("sha1", text, "base64");
    return { fields: digest(applied.text.fieldsV1), values: digest(storedText(entry, applied)) };
  }

  /** Returns the applied fields with their values, like Extract of client-go. Undefined if there are none or only of another API version. */
  extract({ definition }: WriteTarget, part: WritePart, entry: DecodedResource): JsonObject | undefined {
    const applied = this.#appliedState(definition, part, entry);
    return applied && (extractOwned(entry.object as unknown as JsonValue, applied.owned, applied.schema) as JsonObject);
  }

  /** Returns the keys of the labels and annotations that were applied to an object. */
  appliedMetadata(entry: DecodedResource): { readonly labels: KeySet; readonly annotations: KeySet } {
    const text = this.ownedFields(entry, "object")?.fieldsV1;
    const metadata = text === undefined ? undefined : parseOwnedFields(text).fields.get("metadata");
    const keysOf = (member: string) => metadata?.fields.get(member)?.fields ?? NO_KEYS;
    return { labels: keysOf("labels"), annotations: keysOf("annotations") };
  }

  ownedFields(entry: DecodedResource, part: WritePart): OwnedFields | undefined {
    return ownedBy(entry, this.#fieldManager, part === "status" ? "status" : "");
  }

  // Returns undefined if no field was applied, or only in another API version.
  #appliedState(definition: ResourceDefinition, part: WritePart, live: DecodedResource): AppliedState | undefined {
    const text = this.ownedFields(live, part);
    if (text === undefined || text.apiVersion !== definition.apiVersion) return undefined;
    return { text, owned: parseOwnedFields(text.fieldsV1), schema: schemaOf(definition) };
  }
}

type KeySet = Pick<ReadonlySet<string>, "has">;
const NO_KEYS: KeySet = new Set();

interface AppliedState extends MatchOptions {
  readonly text: OwnedFields;
}

// The desired object is almost always plain JSON that matches, so checking whether it is plain comes last.
function matchesAsJson(desired: object, live: JsonObject, options: MatchOptions): boolean {
  if (matches(desired as JsonObject, live, options)) return true;
  return !isPlain(desired) && matches(plainOf(desired) as JsonObject, live, options);
}

function mutationOf(desired: object, live: DecodedResource, applied: AppliedState): Mutation {
  return { sent: JSON.stringify(desired), stored: storedText(live, applied) };
}

function storedText({ object }: DecodedResource, { text, owned, schema }: AppliedState): string {
  return text.fieldsV1 + JSON.stringify(project(object as unknown as JsonValue, owned, schema));
}

// Returns the owned part of a value. Lists keep their order.
function project(value: JsonValue | undefined, owned: FieldNode, schema: SchemaNode): unknown {
  if (isLeaf(owned) || typeof value !== "object" || value === null) return value ?? null;
  if (Array.isArray(value)) {
    // The list had another type when the schema was compiled, so its items cannot be identified.
    if (schema.merge === "leaf" || schema.merge === "deduced") return value;
    if (owned.items.size === 0) return value.filter((item) => owned.values.has(valueKeyOf(item)));
    return value.flatMap((item) => {
      const node = owned.items.get(keyOfListItem(item, schema));
      return node === undefined ? [] : [project(item, node, schema.items)];
    });
  }
  return [...owned.fields].map(([name, node]) => [name, project(value[name], node, schema.property(name))]);
}

interface Mutation {
  readonly sent: string;
  readonly stored: string;
}

/**
 * Remembers server-side mutations that no schema describes, such as those of an admission webhook; otherwise, these objects would be written in every
 * reconcile. The webhook may be removed, so the same object is sent again after ten minutes.
 */
class ServerMutations {
  readonly #clock: Clock;
  readonly #mutations = new WeakMap<ResourceView, Map<string, Mutation & { readonly places: string; until: number }>>();

  constructor(clock: Clock = systemClock) {
    this.#clock = clock;
  }

  /** Returns whether the same object was sent before and is still stored as it was after that. Returns false once after ten minutes. */
  isKnown(write: Write, mutationOf: () => Mutation): boolean {
    const known = this.#mutations.get(write.target.cache)?.get(`${storedPart(write)} ${keyOf(write.ref)}`);
    if (known === undefined) return false;
    const { sent, stored } = mutationOf();
    if (known.sent !== sent || known.stored !== stored) return false;
    const isHolding = this.#clock.now() < known.until;
    if (!isHolding) known.until = this.#clock.now() + MUTATION_MS;
    return isHolding;
  }

  /** Records how an object is stored, and logs a warning about new differences. */
  learn(write: Write, mutation: Mutation, differences: readonly Difference[]): void {
    const { target, ref, body, cause } = write;
    const { cache, definition } = target;
    const part = storedPart(write);
    let known = this.#mutations.get(cache);
    if (known === undefined) {
      this.#mutations.set(cache, (known = new Map()));
      // Another client, such as the garbage collector, may delete the object.
      cache.onChange((change) => void (change.kind === "deleted" && this.forget(cache, change.object.metadata)));
    }
    const key = `${part} ${keyOf(ref)}`;
    const paths = differences.map(({ path }) => path);
    const places = paths.join(", ");
    const isTold = known.get(key)?.places === places;
    known.set(key, { ...mutation, places, until: this.#clock.now() + MUTATION_MS });
    if (isTold || paths.length === 0) return;
    const what = `${part === "status" ? "the status of " : ""}${describeObject(definition, ref)}`;
    cause?.logger?.warn(
      { dependent: cause.dependent, paths },
      `${what} differs from the applied object (${places}): ${likelyCauseOf(paths, body, definition)}. Accepting the stored values, ` +
        "next apply in 10m at the earliest; exempt the object or change desired()",
    );
  }

  /** Drops the mutations of an object. */
  forget(cache: ResourceView, ref: ObjectRef, parts: readonly WritePart[] = ["object", "status"]): void {
    for (const part of parts) this.#mutations.get(cache)?.delete(`${part} ${keyOf(ref)}`);
  }
}

// The API server defaults empty fields and normalizes some formats. It stores everything else unchanged.
function likelyCauseOf(paths: readonly string[], body: object, definition: ResourceDefinition): string {
  const isNormalized = paths.every((path) => {
    const steps = [...path.matchAll(/([^.[\]]+)|\[(\d+)\]/g)].map(([, name, index]) => name ?? Number(index));
    let [value, schema]: [unknown, SchemaNode] = [body, schemaOf(definition)];
    for (const step of steps) {
      value = (value as { readonly [name: string]: unknown } | null | undefined)?.[step];
      schema = typeof step === "number" ? schema.items : schema.property(step);
    }
    const isEmpty = value === undefined || isEmptyValue(value as JsonValue);
    return isEmpty || schema.isTime || schema.isBytes || schema.isQuantity;
  });
  return isNormalized
    ? "the API server, or an admission policy or webhook, changes it"
    : "an admission policy or webhook, or the API server, changes it";
}
