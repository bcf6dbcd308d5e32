import { isApiError } from "../base/errors.js";
import { keyOf, type JsonValue, type KubernetesObject, type ObjectRef } from "../base/kubernetes-object.js";
import type { ResourceDefinition } from "../base/resource-definition.js";
import type { ApiClient } from "../cluster/api-client.js";
import { ownedBy, type DecodedResource } from "../cluster/decode-resource.js";
import { describeObject } from "../cluster/resource-path.js";
import type { ResourceView } from "../cluster/resource-view.js";
import { AppliedRecords, type AppliedObject } from "./applied-records.js";
import { hasForeignChange } from "./foreign-change.js";
import { match, type Verdict } from "./match.js";
import { parseOwnedFields } from "./owned-fields.js";
import { plainOf } from "./plain-json.js";
import { schemaOf } from "./schema-node.js";
import { withEncodedData } from "./secret-data.js";

/** An object to be written, and where its state is kept. */
export interface WriteTarget {
  readonly definition: ResourceDefinition;
  readonly cache: ResourceView;
}

/** What a write did. */
export interface Written {
  readonly kind: "created" | "updated" | "unchanged";
  readonly entry: DecodedResource;
  /** Why it was not a match; absent for an unchanged object. */
  readonly verdict?: Verdict & { readonly matches: false };
}

interface Answer {
  readonly entry: AppliedObject;
  /** Under which name it is remembered what the server made of it. */
  readonly record: string;
}

type JsonObject = { [key: string]: JsonValue };

// An apply that states a version meets a conflict if the object exists, and creates it if not: so nothing of others is taken over.
const VERSION_OF_NOTHING = "1";

/** Writes objects by server-side apply, and only those that are not as desired already. */
export class Writer {
  readonly #client: ApiClient;
  readonly #fieldManager: string;
  /** All controllers of the operator: they share what the answers bring. */
  readonly #fieldManagers: Iterable<string>;
  readonly #records = new AppliedRecords();
  /** What was sent, by the object that the server answered with; whether that matches is not looked at before the next reconcile. */
  readonly #sent = new WeakMap<KubernetesObject, object>();

  constructor(client: ApiClient, fieldManager: string, fieldManagers: Iterable<string> = [fieldManager]) {
    this.#client = client;
    this.#fieldManager = fieldManager;
    this.#fieldManagers = fieldManagers;
  }

  /**
   * Makes an object as desired. `live` is its state if it exists and may be written; without one it is created, which fails if there
   * is one after all.
   */
  async apply(
    { definition, cache }: WriteTarget,
    stated: object & { metadata: ObjectRef },
    { live, signal }: { live: DecodedResource | undefined; signal?: AbortSignal },
  ): Promise<Written> {
    const desired = withEncodedData(definition, stated);
    const key = keyOf(desired.metadata);
    cache.requireWhole(key);
    const record = recordKey(definition, key);
    const subject = live && this.#appliedTo(live);
    const verdict = this.#compare(definition, desired, { live: subject, record });
    if (verdict.matches) {
      if (live !== undefined) this.#sent.delete(live.object);
      return { kind: "unchanged", entry: live as DecodedResource };
    }
    if (live !== undefined && this.#isAnswer(definition, desired, { entry: subject!, record }))
      return { kind: "unchanged", entry: live };
    const body = live === undefined ? withVersion(desired, VERSION_OF_NOTHING) : desired;
    cache.beginWrite(key);
    let written: { entry: DecodedResource; isOwn: boolean } | undefined;
    try {
      const { wasCreated, ...entry } = await this.#client.apply({ definition }, body, {
        fieldManager: this.#fieldManager,
        fieldManagers: this.#fieldManagers,
        findKnown: (version) => cache.getVersion(key, version),
        ...(signal === undefined ? {} : { signal }),
      });
      written = { entry, isOwn: wasCreated || this.#isOwn(definition, subject, this.#appliedTo(entry)) };
      this.#sent.set(entry.object, desired);
      return { kind: wasCreated ? "created" : "updated", entry, verdict };
    } catch (error) {
      if (live === undefined && isApiError(error, 409)) throw alreadyExists(definition, desired.metadata, error);
      throw error;
    } finally {
      cache.endWrite(key, written);
    }
  }

  /**
   * Applies the status of an object through its subresource, if it is not as desired already. Where there is no subresource, the uid
   * keeps it from making an object anew that is gone.
   */
  async applyStatus({ definition, cache }: WriteTarget, status: object, live: DecodedResource): Promise<Written> {
    const { name, namespace, uid, finalizers } = live.object.metadata;
    const key = keyOf({ name, namespace });
    cache.requireWhole(key);
    const hasSubresource = definition.hasStatusSubresource;
    // Without the subresource the status is applied with the object, and what was applied of that before has to be repeated.
    const subject = this.#appliedTo(live, hasSubresource ? "status" : "");
    const { owned } = subject;
    const ownFinalizers = !hasSubresource && owned?.fieldsV1.includes('"f:finalizers"') ? { finalizers } : {};
    const ref = { name, uid, ...(namespace === undefined ? {} : { namespace }) };
    const desired = { metadata: { ...ref, ...ownFinalizers }, status };
    const record = `${recordKey(definition, key)}/status`;
    const verdict = this.#compare(definition, desired, { live: subject, record });
    if (verdict.matches) return { kind: "unchanged", entry: live };
    cache.beginWrite(key);
    let written: { entry: DecodedResource; isOwn: boolean } | undefined;
    try {
      const { wasCreated: _wasCreated, ...entry } = await this.#client.apply({ definition }, desired, {
        fieldManager: this.#fieldManager,
        fieldManagers: this.#fieldManagers,
        findKnown: (version) => cache.getVersion(key, version),
        ...(hasSubresource ? { subresource: "status" } : {}),
      });
      const answered = this.#appliedTo(entry, hasSubresource ? "status" : "");
      written = { entry, isOwn: this.#isOwn(definition, subject, answered) };
      if (!this.#compare(definition, desired, { live: answered, record }).matches)
        this.#records.remember(record, JSON.stringify(desired), { entry: answered, schema: schemaOf(definition) });
      return { kind: "updated", entry, verdict };
    } finally {
      cache.endWrite(key, written);
    }
  }

  /** Deletes an object, unless it was made anew meanwhile; tells whether it is gone at once. */
  async delete({ definition, cache }: WriteTarget, live: KubernetesObject): Promise<boolean> {
    const { name, namespace, uid } = live.metadata;
    const key = keyOf(live.metadata);
    try {
      const { isGone } = await this.#client.delete({ definition }, { name, namespace }, { uid });
      if (isGone && uid !== undefined) cache.removeOwn(key, uid);
      this.#records.delete(recordKey(definition, key));
      return isGone;
    } catch (error) {
      // Another object has the name by now: ours is gone.
      if (isApiError(error, 409)) return true;
      throw error;
    }
  }

  #appliedTo(entry: DecodedResource, subresource: "" | "status" = ""): AppliedObject {
    return { object: entry.object, owned: ownedBy(entry, this.#fieldManager, subresource) };
  }

  // The same is desired that was sent last, and what is there is the answer: as that does not match, the server stores something else than
  // we send, which is remembered. It is looked at only now because most objects are never reconciled again in that state.
  #isAnswer(definition: ResourceDefinition, desired: object, { entry, record }: Answer): boolean {
    const sent = this.#sent.get(entry.object);
    if (sent === undefined) return false;
    this.#sent.delete(entry.object);
    const text = JSON.stringify(sent);
    if (text !== JSON.stringify(desired)) return false;
    this.#records.remember(record, text, { entry, schema: schemaOf(definition) });
    return this.#compare(definition, desired, { live: entry, record }).matches;
  }

  #compare(
    definition: ResourceDefinition,
    desired: object,
    { live, record }: { live: AppliedObject | undefined; record: string },
  ): Verdict {
    if (live === undefined) return { matches: false, path: "", reason: "does not exist" };
    const { owned } = live;
    if (owned === undefined || owned.apiVersion !== definition.apiVersion)
      return { matches: false, path: "", reason: "was not applied by this controller in this version" };
    const schema = schemaOf(definition);
    const verdict = match(plainOf(desired) as JsonObject, live.object as unknown as JsonObject, {
      owned: parseOwnedFields(owned.fieldsV1),
      schema,
    });
    if (verdict.matches || !this.#records.has(record)) return verdict;
    const isUnchanged = this.#records.isUnchanged(record, JSON.stringify(desired), { entry: live, schema });
    return isUnchanged ? { matches: true } : verdict;
  }

  // The version of an answer is our own only if the write changed something and met nothing new: a write that changes nothing answers
  // with the version of a change that we may not have seen yet.
  #isOwn(definition: ResourceDefinition, before: AppliedObject | undefined, after: AppliedObject): boolean {
    if (before === undefined || before.object.metadata.resourceVersion === after.object.metadata.resourceVersion)
      return false;
    const owned = [before.owned, after.owned].flatMap((fields) => (fields ? parseOwnedFields(fields.fieldsV1) : []));
    return !hasForeignChange(before.object, after.object, { owned, schema: schemaOf(definition) });
  }
}

function withVersion<Desired extends { metadata: ObjectRef }>(desired: Desired, resourceVersion: string): Desired {
  return { ...desired, metadata: { ...desired.metadata, resourceVersion } };
}

function recordKey({ apiVersion, kind }: ResourceDefinition, key: string): string {
  return `${apiVersion}/${kind}/${key}`;
}

function alreadyExists(definition: ResourceDefinition, ref: ObjectRef, cause: unknown): Error {
  const object = describeObject(definition, ref);
  return new Error(
    `${object} exists already and does not belong to this primary; delete it or give the dependent another name`,
    {
      cause,
    },
  );
}
