// A server and its watch for the properties of the cache. What a write answers and what the watch delivers take different ways, so
// that either may come first; the watch itself keeps its order and may be replaced by a list.
import { refOfKey, type KubernetesObject, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import { compareResourceVersions } from "#runtime/base/resource-version.js";
import type { DecodedResource } from "#runtime/cluster/decode-resource.js";
import { ResourceCache, type ResourceChange } from "#runtime/cluster/resource-cache.js";
import { assert } from "../../../support/suite.js";

/** What the test writes into an object: one part is ours, the other belongs to somebody else. */
interface Simulated extends KubernetesObject {
  readonly ours: number;
  readonly theirs: number;
}

interface LogEntry {
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  readonly object: Simulated;
}

interface Request {
  readonly kind: "write" | "delete";
  readonly key: ObjectKey;
  readonly value: number;
  readonly before: Simulated | undefined;
  answer?: { readonly object: Simulated | undefined; readonly wasCreated: boolean };
}

interface Scope {
  readonly namespace: string | undefined;
  /** How many entries of the log the watch has passed. */
  position: number;
  snapshot: { readonly entries: Simulated[]; readonly version: string; readonly position: number } | undefined;
}

/** Versions as the server counts them; the first has two digits, and soon there are three. */
const FIRST_VERSION = 95;

/** The simulation: each method is one thing that may happen, in any order; it does nothing where it makes no sense. */
export class SimulatedWatch {
  readonly cache: ResourceCache;
  readonly #objects = new Map<ObjectKey, Simulated>();
  readonly #log: LogEntry[] = [];
  readonly #requests: Request[] = [];
  readonly #scopes: Scope[];
  #version = FIRST_VERSION;
  /** Versions that others made, which have to be reported once the cache has them. */
  readonly #theirs: { readonly key: ObjectKey; readonly version: string; readonly uid: string }[] = [];
  /** Versions that we made and know of. */
  readonly #known = new Set<string>();
  readonly #deletedByUs = new Set<string>();
  /** The uids that the cache ever had. */
  readonly #seen = new Set<string>();
  /** The deletion that the cache was told of last, by key. */
  readonly #goneSince = new Map<ObjectKey, string>();
  readonly notes: string[] = [];

  constructor({ namespaces }: { namespaces?: readonly string[] } = {}) {
    this.cache = new ResourceCache({}, { isPerNamespace: namespaces !== undefined });
    this.#scopes = (namespaces ?? [undefined]).map((namespace) => ({ namespace, position: 0, snapshot: undefined }));
    this.cache.onChange((change) => this.#onChange(change));
    for (const scope of this.#scopes) this.cache.replace([], `${this.#version}`, scope.namespace);
  }

  /** Somebody else creates or changes an object. */
  changeByOthers(key: ObjectKey): void {
    const live = this.#objects.get(key);
    const object = this.#store(key, {
      ours: live?.ours ?? 0,
      theirs: (live?.theirs ?? 0) + 1,
      uid: live?.metadata.uid,
    });
    this.#theirs.push({ key, version: versionOf(object), uid: object.metadata.uid! });
  }

  /** Somebody else deletes an object. */
  deleteByOthers(key: ObjectKey): void {
    const live = this.#objects.get(key);
    if (live === undefined) return;
    const version = this.#remove(key, live);
    this.#theirs.push({ key, version, uid: live.metadata.uid! });
  }

  /** We begin to write an object, knowing what the cache knows. */
  beginWrite(key: ObjectKey, value: number): void {
    const before = this.cache.get(key)?.object as Simulated | undefined;
    if (this.#isBusy(key) || before?.ours === value) return;
    this.#forgetRead(key, before);
    this.cache.beginWrite(key);
    this.#requests.push({ kind: "write", key, value, before });
  }

  /** We begin to delete the object that the cache knows. */
  beginDelete(key: ObjectKey): void {
    const before = this.cache.get(key)?.object as Simulated | undefined;
    if (before === undefined || this.#isBusy(key)) return;
    this.#forgetRead(key, before);
    this.#requests.push({ kind: "delete", key, value: 0, before });
  }

  // Whoever writes has read what the cache had: nobody needs to be told of that any more.
  #forgetRead(key: ObjectKey, read: Simulated | undefined): void {
    const version = read === undefined ? "0" : versionOf(read);
    this.#forgetTheirs((change) => change.key === key && compareResourceVersions(change.version, version) <= 0);
  }

  // A controller makes one request after the other for each object.
  #isBusy(key: ObjectKey): boolean {
    return this.#requests.some((request) => request.key === key);
  }

  /** A request reaches the server. */
  execute(index: number): void {
    const request = this.#requests[index % (this.#requests.length || 1)];
    if (request === undefined || request.answer !== undefined) return;
    const { kind, key, value, before } = request;
    const live = this.#objects.get(key);
    if (kind === "delete") {
      // A precondition on the uid keeps it from deleting what was made anew.
      if (live !== undefined && live.metadata.uid === before?.metadata.uid) this.#remove(key, live);
      request.answer = { object: undefined, wasCreated: false };
    } else if (live?.ours === value) request.answer = { object: live, wasCreated: false };
    else {
      const object = this.#store(key, { ours: value, theirs: live?.theirs ?? 0, uid: live?.metadata.uid });
      request.answer = { object, wasCreated: live === undefined };
    }
  }

  /** The answer to a request arrives, or is lost. */
  finish(index: number, { isLost }: { isLost: boolean }): void {
    const at = index % (this.#requests.length || 1);
    const request = this.#requests[at];
    if (request?.answer === undefined) return;
    this.#requests.splice(at, 1);
    const { kind, key, before, answer } = request;
    if (kind === "delete") {
      if (isLost) return;
      this.#deletedByUs.add(before!.metadata.uid!);
      this.cache.removeOwn(key, before!.metadata.uid!);
    } else if (isLost || answer.object === undefined) this.cache.endWrite(key);
    else {
      const { object, wasCreated } = answer;
      const isOwn =
        wasCreated || (before !== undefined && versionOf(before) !== versionOf(object) && isSameBut(before, object));
      if (isOwn) this.#known.add(versionOf(object));
      // What we made from nothing has nothing of others left in it.
      if (wasCreated)
        this.#forgetTheirs(
          (change) => change.key === key && compareResourceVersions(change.version, versionOf(object)) < 0,
        );
      this.cache.endWrite(key, { entry: entryOf(object), isOwn });
      this.#checkReadsOwnWrite(key, object);
    }
    this.#checkNothingIsBack();
  }

  /** The watch delivers its next event, or a bookmark if it has none. */
  deliver(index: number): void {
    const scope = this.#scopes[index % this.#scopes.length]!;
    if (scope.snapshot !== undefined) return;
    const event = this.#log[scope.position];
    if (event === undefined) return this.cache.observeVersion(`${this.#version}`, scope.namespace);
    scope.position++;
    if (!isInScope(event.object, scope)) return this.deliver(index);
    const { metadata } = event.object;
    if (event.type === "DELETED") {
      this.#goneSince.set(keyOfObject(event.object), metadata.resourceVersion!);
      this.cache.observeDeletion(copyOf(event.object));
    } else if (!this.cache.observeOwn(metadata.resourceVersion!)) this.cache.observe(entryOf(event.object));
    this.#checkNothingIsBack();
  }

  /** The watch breaks, and the server takes a snapshot for a list. */
  beginList(index: number): void {
    const scope = this.#scopes[index % this.#scopes.length]!;
    const entries = [...this.#objects.values()].filter((object) => isInScope(object, scope));
    scope.snapshot ??= { entries, version: `${this.#version}`, position: this.#log.length };
  }

  /** The list arrives, and the watch goes on behind it. */
  endList(index: number): void {
    const scope = this.#scopes[index % this.#scopes.length]!;
    const { snapshot } = scope;
    if (snapshot === undefined) return;
    scope.snapshot = undefined;
    for (const { object, type } of this.#log.slice(scope.position, snapshot.position))
      if (type === "DELETED" && isInScope(object, scope)) this.#goneSince.set(keyOfObject(object), versionOf(object));
    scope.position = snapshot.position;
    // Of what came and went unseen between two lists nobody can know.
    const listed = new Set(snapshot.entries.map(({ metadata }) => metadata.uid));
    this.#forgetTheirs(({ key, version, uid }) => {
      const isUnseen = !listed.has(uid) && !this.#seen.has(uid) && isKeyInScope(key, scope);
      return isUnseen && compareResourceVersions(version, snapshot.version) <= 0;
    });
    this.cache.replace(snapshot.entries.map(entryOf), snapshot.version, scope.namespace);
    this.#checkNothingIsBack();
  }

  /** Lets everything arrive, and checks what holds then. */
  settle(): void {
    while (this.#requests.length > 0) {
      this.execute(0);
      this.finish(0, { isLost: false });
    }
    this.#scopes.forEach((scope, index) => {
      this.endList(index);
      while (scope.position < this.#log.length) this.deliver(index);
    });
    assert.equal(versionsOf(this.cache), new Map([...this.#objects].map(([key, object]) => [key, versionOf(object)])));
    assert.not(this.cache.expectsOwn, "every own version has come or never will");
    const unreported = this.#theirs.filter(({ uid }) => !this.#deletedByUs.has(uid));
    assert.equal(unreported, [], "changes of others that nobody was told of");
  }

  #onChange({ kind, key, object }: ResourceChange): void {
    this.notes.push(`${kind} ${key}@${object.metadata.resourceVersion}`);
    if (kind !== "deleted")
      assert.not(this.#known.has(object.metadata.resourceVersion!), `reported our own version of ${key}`);
    const cached = this.cache.get(key)?.object;
    const version = cached === undefined ? this.#goneSince.get(key) : versionOf(cached as Simulated);
    // Whoever reads the cache now sees every change up to this version.
    this.#forgetTheirs(
      (change) => change.key === key && version !== undefined && compareResourceVersions(change.version, version) <= 0,
    );
  }

  #forgetTheirs(isDone: (change: { key: ObjectKey; version: string; uid: string }) => boolean): void {
    for (let index = this.#theirs.length - 1; index >= 0; index--)
      if (isDone(this.#theirs[index]!)) this.#theirs.splice(index, 1);
  }

  #checkReadsOwnWrite(key: ObjectKey, { metadata }: Simulated): void {
    const version = metadata.resourceVersion!;
    const cached = this.cache.get(key)?.object.metadata.resourceVersion;
    const isGone = compareResourceVersions(this.#goneSince.get(key) ?? "0", version) > 0;
    if (isGone || this.#deletedByUs.has(metadata.uid!)) return;
    assert.ok(cached !== undefined && compareResourceVersions(cached, version) >= 0, `${key}@${version} is read back`);
  }

  #checkNothingIsBack(): void {
    for (const key of this.cache.keys()) {
      const { metadata } = this.cache.get(key)!.object;
      this.#seen.add(metadata.uid!);
      assert.not(this.#deletedByUs.has(metadata.uid!), `${key} is back after we deleted it`);
      const goneSince = this.#goneSince.get(key);
      if (goneSince !== undefined)
        assert.ok(compareResourceVersions(metadata.resourceVersion!, goneSince) > 0, `${key} is back from the dead`);
    }
  }

  #store(key: ObjectKey, content: { ours: number; theirs: number; uid: string | undefined }): Simulated {
    const version = `${++this.#version}`;
    const { uid = `uid-${version}`, ours, theirs } = content;
    const metadata = { ...refOfKey(key), uid, resourceVersion: version };
    const object = { apiVersion: "v1", kind: "ConfigMap", metadata, ours, theirs };
    this.#log.push({ type: this.#objects.has(key) ? "MODIFIED" : "ADDED", object });
    this.#objects.set(key, object);
    return object;
  }

  #remove(key: ObjectKey, live: Simulated): string {
    const version = `${++this.#version}`;
    this.#objects.delete(key);
    this.#log.push({ type: "DELETED", object: { ...live, metadata: { ...live.metadata, resourceVersion: version } } });
    return version;
  }
}

function isSameBut(before: Simulated, after: Simulated): boolean {
  return before.theirs === after.theirs && before.metadata.uid === after.metadata.uid;
}

function isInScope(object: Simulated, scope: Scope): boolean {
  return isKeyInScope(keyOfObject(object), scope);
}

function isKeyInScope(key: ObjectKey, { namespace }: Scope): boolean {
  return namespace === undefined || refOfKey(key).namespace === namespace;
}

function versionOf({ metadata }: Simulated): string {
  return metadata.resourceVersion!;
}

function keyOfObject({ metadata }: Simulated): ObjectKey {
  return `${metadata.namespace}/${metadata.name}`;
}

function copyOf(object: Simulated): Simulated {
  return structuredClone(object);
}

function entryOf(object: Simulated): DecodedResource {
  return { object: copyOf(object) };
}

function versionsOf(cache: ResourceCache): Map<ObjectKey, string> {
  return new Map([...cache.keys()].map((key) => [key, cache.get(key)!.object.metadata.resourceVersion!]));
}
