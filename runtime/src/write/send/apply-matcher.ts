import { genericDifferences } from "../../match/matchers.js";
import { keyOf, type KubernetesObject, type ObjectRef } from "../../base/kubernetes-object.js";
import type { ResourceDefinition } from "../../base/resource-definition.js";
import { ownedBy, type DecodedResource, type OwnedFields } from "../../decode/decode-resource.js";
import type { ResourceView } from "../../cache/resource-view.js";
import { AppliedRecords } from "./applied-records.js";
import { hasForeignChange } from "../../match/foreign-change.js";
import { findDifferences, match, type Difference, type MatchOptions, type Verdict } from "../../match/match.js";
import type { JsonObject } from "../../match/same-value.js";
import { parseOwnedFields } from "../../match/owned-fields.js";
import { plainOf } from "../../match/plain-json.js";
import { schemaOf } from "../../match/schema-node.js";

/** A kind that is written, and where the state of its objects is kept. */
export interface WriteTarget {
  readonly definition: ResourceDefinition;
  readonly cache: ResourceView;
}

/** What is applied at once: an object, or the status of one through its subresource. */
export type AppliedPart = "object" | "status";

/** Something to be applied. */
export interface Application {
  readonly target: WriteTarget;
  readonly part: AppliedPart;
  readonly desired: object & { readonly metadata: ObjectRef };
}

const ABSENT: Difference = { path: "", reason: "does not exist" };
const UNOWNED: Difference = { path: "", reason: "was not applied by this controller in this version" };

/**
 * Compares what one field manager wants to apply with what is there, and what of that it owns.
 *
 * It learns what the server makes of values that it stores in another form than they are sent in.
 */
export class ApplyMatcher {
  readonly #fieldManager: string;
  readonly #records = new WeakMap<ResourceView, AppliedRecords>();
  /** What was sent, by the object that the server answered with; whether that matches is not looked at before the next reconcile. */
  readonly #sent = new WeakMap<KubernetesObject, { readonly part: AppliedPart; readonly desired: object }>();

  constructor(fieldManager: string) {
    this.#fieldManager = fieldManager;
  }

  /** Tells whether applying would change nothing. */
  compare(application: Application, live: DecodedResource | undefined): Verdict {
    if (live === undefined) return { matches: false, ...ABSENT };
    const verdict = this.#compareWithRecords(application, live);
    if (verdict.matches) {
      this.#sent.delete(live.object);
      return verdict;
    }
    return this.#learn(application, live) ? this.#compareWithRecords(application, live) : verdict;
  }

  /** Names the places, `limit` at most, that keep an object from being as desired. */
  differences(application: Application, live: DecodedResource | undefined, limit: number): readonly Difference[] {
    const options = live && this.#matchOptions(application, live);
    if (live === undefined) return [ABSENT];
    if (options === undefined) {
      // Whoever changed all that we owned took it over; the values still tell where.
      const { target, desired } = application;
      const found = genericDifferences({ definition: target.definition, desired, live: live.object }, limit);
      return found.length > 0 ? found : [UNOWNED];
    }
    return findDifferences(plainOf(application.desired) as JsonObject, live.object as unknown as JsonObject, {
      ...options,
      limit,
    });
  }

  /** Takes what the server answered to an apply. */
  remember({ part, desired }: Application, answer: DecodedResource): void {
    this.#sent.set(answer.object, { part, desired });
  }

  /** Forgets what was learnt of an object that is gone. */
  forget({ cache }: WriteTarget, ref: ObjectRef): void {
    for (const part of ["object", "status"] as const) this.#records.get(cache)?.delete(recordKey(part, keyOf(ref)));
  }

  /** Tells whether an apply changed something, and nothing has changed that it does not cover. */
  isOwn({ target, part }: Application, before: DecodedResource | undefined, after: DecodedResource): boolean {
    if (before === undefined || before.object.metadata.resourceVersion === after.object.metadata.resourceVersion)
      return false;
    const owned = [before, after].flatMap((entry) => {
      const fields = this.ownedFields(entry, part);
      return fields === undefined ? [] : parseOwnedFields(fields.fieldsV1);
    });
    return !hasForeignChange(before.object, after.object, { owned, schema: schemaOf(target.definition) });
  }

  /** Returns what the field manager applied to an object, or to its status. */
  ownedFields(entry: DecodedResource, part: AppliedPart): OwnedFields | undefined {
    return ownedBy(entry, this.#fieldManager, part === "status" ? "status" : "");
  }

  // Undefined if nothing was applied, or only in another version.
  #matchOptions(
    { target, part }: Application,
    live: DecodedResource,
  ): (MatchOptions & { text: OwnedFields }) | undefined {
    const { definition } = target;
    const text = this.ownedFields(live, part);
    if (text === undefined || text.apiVersion !== definition.apiVersion) return undefined;
    return { text, owned: parseOwnedFields(text.fieldsV1), schema: schemaOf(definition) };
  }

  #compareWithRecords(application: Application, live: DecodedResource): Verdict {
    const { target, part, desired } = application;
    const options = this.#matchOptions(application, live);
    if (options === undefined) return { matches: false, ...UNOWNED };
    const verdict = matchAsJson(desired, live.object as unknown as JsonObject, options);
    if (verdict.matches) return verdict;
    const records = this.#records.get(target.cache);
    const key = recordKey(part, keyOf(desired.metadata));
    if (records?.has(key) !== true) return verdict;
    const state = { object: live.object, owned: options.text, schema: options.schema };
    return records.isUnchanged(key, JSON.stringify(desired), state) ? { matches: true } : verdict;
  }

  // The same is desired that was sent last, and what is there is the answer: as that does not match, the server stores something else than
  // we send, which is remembered. It is looked at only now because most objects are never reconciled again in that state.
  #learn({ target, part, desired }: Application, live: DecodedResource): boolean {
    const sent = this.#sent.get(live.object);
    if (sent?.part !== part) return false;
    this.#sent.delete(live.object);
    const text = JSON.stringify(sent.desired);
    const owned = this.ownedFields(live, part);
    if (owned === undefined || text !== JSON.stringify(desired)) return false;
    const state = { object: live.object, owned, schema: schemaOf(target.definition) };
    this.#recordsOf(target.cache).remember(recordKey(part, keyOf(desired.metadata)), text, state);
    return true;
  }

  #recordsOf(cache: ResourceView): AppliedRecords {
    let records = this.#records.get(cache);
    if (records === undefined) {
      this.#records.set(cache, (records = new AppliedRecords()));
      // What somebody else deleted, such as the garbage collector.
      cache.onChange(({ kind, object }) => {
        if (kind === "deleted") this.forget({ cache } as WriteTarget, object.metadata);
      });
    }
    return records;
  }
}

// Nearly always it is plain and matches, and need not be looked through before.
function matchAsJson(desired: object, live: JsonObject, options: MatchOptions): Verdict {
  const verdict = match(desired as JsonObject, live, options);
  if (verdict.matches) return verdict;
  const plain = plainOf(desired);
  return plain === desired ? verdict : match(plain as JsonObject, live, options);
}

function recordKey(part: AppliedPart, key: string): string {
  return `${part} ${key}`;
}
