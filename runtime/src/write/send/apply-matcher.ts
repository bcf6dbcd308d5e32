import { hash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import type { JsonObject, JsonValue } from "@gen-operator/schema";
import type { ObjectRef } from "../../base/kubernetes-object.js";
import type { Clock } from "../../base/clock.js";
import { hasLink } from "../../base/primary-link.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import { ownedBy, type DecodedResource, type OwnedFields } from "../../base/decoded-resource.js";
import type { ResourceView } from "../../cache/resource-view.js";
import { hasForeignChange } from "../../match/foreign-change.js";
import type { FieldPath, FieldsV1 } from "../../match/field-set.js";
import { findLeftBehind, resolveField, type LeftField } from "../../match/left-behind.js";
import { findDifferences, matches, type Difference, type MatchOptions } from "../../match/match.js";
import { genericDifferences } from "../../match/matchers.js";
import { isLeaf, keyOfListItem, NOTHING, parseOwnedFields, valueKeyOf } from "../../match/owned-fields.js";
import type { FieldNode } from "../../match/owned-fields.js";
import { isPlain, plainOf } from "../../match/json-value.js";
import { schemaOf, type SchemaNode } from "../../match/schema-node.js";
import { applicationOf, type Sending } from "./plan.js";
import type { WriteCause } from "./postponed-write.js";
import { StoredForms } from "./stored-forms.js";

/** A kind that is written, and where the state of its objects is kept. */
export interface WriteTarget {
  readonly definition: ResourceDefinition;
  readonly cache: ResourceView;
}

/** What is written at once: an object, or the status of one through its subresource. */
export interface Application {
  readonly target: WriteTarget;
  readonly part: "object" | "status";
  readonly desired: object & { readonly metadata: ObjectRef };
}

/** How many places are named that are not as desired. */
export const NAMED_DIFFERENCES = 10;
const ABSENT: Difference = { path: "", reason: "does not exist" };
const UNOWNED: Difference = { path: "", reason: "was not applied by this controller in this version" };

/** Compares what one field manager wants to apply with what is there, and learns in which other form the server stores some values. */
export class ApplyMatcher {
  readonly #fieldManager: string;
  readonly forms: StoredForms;

  constructor(fieldManager: string, clock?: Clock) {
    this.#fieldManager = fieldManager;
    this.forms = new StoredForms(clock);
  }

  /** Tells whether an apply would change nothing. */
  matches(application: Application, live: DecodedResource | undefined): boolean {
    if (live === undefined) return false;
    const options = this.#matchOptions(application, live);
    const { desired, target, part } = application;
    if (options === undefined) {
      // Whoever applies nothing but empty lists owns nothing.
      const isApplied = this.ownedFields(live, part) !== undefined;
      const bare = { owned: NOTHING, schema: schemaOf(target.definition) };
      return !isApplied && matchesAsJson(desired, live.object as never, bare);
    }
    if (matchesAsJson(desired, live.object as never, options)) return true;
    return this.forms.isKnown(application, () => formOf(application, live, options));
  }

  /** Learns from the answer to a write whether, and how, the server stores something else. */
  learn(application: Application, answer: DecodedResource, cause?: WriteCause): void {
    const { desired, target, part } = application;
    const options = this.#matchOptions(application, answer);
    if (options === undefined) return;
    if (matchesAsJson(desired, answer.object as never, options))
      return this.forms.forget(target.cache, desired.metadata, [part]);
    // An object without its link is an error of its write, and no form.
    if (!hasLink(answer.object.metadata, desired.metadata)) return;
    // Without a schema nobody knows how a field is owned, so that its values alone tell whether somebody changed them.
    const isUntyped = Object.keys(target.definition.schema).length === 0;
    const differences = isUntyped
      ? genericDifferences({ definition: target.definition, desired, live: answer.object }).slice(0, NAMED_DIFFERENCES)
      : this.differences(application, answer, NAMED_DIFFERENCES);
    this.forms.learn(application, formOf(application, answer, options), { differences, cause });
  }

  /** Names the places, `limit` at most, that keep an object from being as desired. */
  differences(application: Application, live: DecodedResource | undefined, limit: number): readonly Difference[] {
    if (live === undefined) return [ABSENT];
    const { target, desired } = application;
    const options = this.#matchOptions(application, live);
    const wanted = plainOf(desired) as JsonObject;
    if (options !== undefined) return findDifferences(wanted, live.object as never, { ...options, limit });
    // Whoever changed all that we owned took it over; the values still tell where.
    const found = genericDifferences({ definition: target.definition, desired, live: live.object }).slice(0, limit);
    return found.length > 0 ? found : [UNOWNED];
  }

  /** Returns the fields that an apply no longer states, and that have the same value after it. */
  leftBehind({ target, plan, content, before }: Sending, after: DecodedResource): readonly LeftField[] {
    const application = applicationOf(target, plan, content);
    if (application === undefined || before === undefined) return [];
    const { part, desired } = application;
    const [owned, owns] = [before, after].map((entry) => this.ownedFields(entry, part));
    if (owned === undefined || owned.fieldsV1 === owns?.fieldsV1) return [];
    const fieldsOf = (fields: OwnedFields | undefined) => fields && (JSON.parse(fields.fieldsV1) as FieldsV1);
    const sets = { before: fieldsOf(owned), after: fieldsOf(owns), schema: schemaOf(target.definition) };
    const left = findLeftBehind(after.object as unknown as JsonValue, plainOf(desired)!, sets);
    // A default in the place of another value says that the field was removed.
    const valueBefore = (fields: FieldPath) => resolveField(before.object as unknown as JsonValue, fields)?.value;
    return left.filter(({ fields, value }) => isDeepStrictEqual(value, valueBefore(fields)));
  }

  /** Tells whether an apply changed something, and nothing has changed that it does not cover. */
  isOwn({ target, part }: Application, before: DecodedResource, after: DecodedResource): boolean {
    if (before.object.metadata.resourceVersion === after.object.metadata.resourceVersion) return false;
    const fields = [before, after].flatMap((entry) => this.ownedFields(entry, part) ?? []);
    const owned = fields.map(({ fieldsV1 }) => parseOwnedFields(fieldsV1));
    return !hasForeignChange(before.object, after.object, { owned, schema: schemaOf(target.definition) });
  }

  /** Returns digests of which fields of an object, or of its status, are applied, and of their values; undefined if none are. */
  digestsOf(
    place: Pick<Application, "target" | "part">,
    entry: DecodedResource,
  ): { readonly fields: string; readonly values: string } | undefined {
    const applied = this.#matchOptions(place, entry);
    if (applied === undefined) return undefined;
    const digest = (text: string) => hash("sha1", text, "base64");
    return { fields: digest(applied.text.fieldsV1), values: digest(storedText(entry, applied)) };
  }

  /** Returns the keys of the labels and annotations that are applied to an object. */
  appliedMetadata(entry: DecodedResource): { readonly labels: KeySet; readonly annotations: KeySet } {
    const text = this.ownedFields(entry, "object")?.fieldsV1;
    const metadata = text === undefined ? undefined : parseOwnedFields(text).fields.get("metadata");
    const keysOf = (member: string) => metadata?.fields.get(member)?.fields ?? NO_KEYS;
    return { labels: keysOf("labels"), annotations: keysOf("annotations") };
  }

  ownedFields(entry: DecodedResource, part: Application["part"]): OwnedFields | undefined {
    return ownedBy(entry, this.#fieldManager, part === "status" ? "status" : "");
  }

  // Undefined if nothing was applied, or only in another version.
  #matchOptions(
    { target, part }: Pick<Application, "target" | "part">,
    live: DecodedResource,
  ): AppliedState | undefined {
    const { definition } = target;
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

// Nearly always it is plain and matches, and need not be looked through before.
function matchesAsJson(desired: object, live: JsonObject, options: MatchOptions): boolean {
  if (matches(desired as JsonObject, live, options)) return true;
  return !isPlain(desired) && matches(plainOf(desired) as JsonObject, live, options);
}

function formOf({ desired }: Application, live: DecodedResource, options: AppliedState) {
  return { sent: JSON.stringify(desired), stored: storedText(live, options) };
}

function storedText({ object }: DecodedResource, { text, owned, schema }: AppliedState): string {
  return text.fieldsV1 + JSON.stringify(project(object as unknown as JsonValue, owned, schema));
}

// What of a value is owned, with lists in the order in which they stand.
function project(value: JsonValue | undefined, owned: FieldNode, schema: SchemaNode): unknown {
  if (isLeaf(owned) || typeof value !== "object" || value === null) return value ?? null;
  if (Array.isArray(value)) {
    // The list had another type when the schema was compiled: its items cannot be told apart.
    if (schema.merge === "leaf" || schema.merge === "deduced") return value;
    if (owned.items.size === 0) return value.filter((item) => owned.values.has(valueKeyOf(item)));
    return value.flatMap((item) => {
      const node = owned.items.get(keyOfListItem(item, schema));
      return node === undefined ? [] : [project(item, node, schema.items)];
    });
  }
  return [...owned.fields].map(([name, node]) => [name, project(value[name], node, schema.property(name))]);
}
