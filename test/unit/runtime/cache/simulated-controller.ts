import { refOfKey, type ObjectKey, compareResourceVersions } from "#runtime/base/kubernetes-object.js";
import type { ResourceCache, ResourceChange } from "#runtime/cache/resource-cache.js";
import { ResourceView } from "#runtime/cache/resource-view.js";
import { builtinDefinition } from "../../../support/kinds/kind-definitions.js";
import { assert } from "../../../support/suite.js";
import { entryOf, versionOf, type Simulated, type SimulatedServer } from "./simulated-server.js";

/** A change by somebody else. */
interface Theirs {
  readonly key: ObjectKey;
  readonly version: string;
  readonly uid: string;
}

const definition = builtinDefinition("v1", "ConfigMap");

/** A view with what its controller did, and has not been told of. */
export class SimulatedController {
  readonly view = new ResourceView(definition, { sum: (object) => [sumOf(object as Simulated)] });
  /** Which part of an object is ours. */
  readonly part: number;
  readonly notes: string[] = [];
  /** Changes by others that have to be told once the cache has them. */
  theirs: Theirs[] = [];
  /** Versions that a list brought or made unseen. */
  readonly listed = new Set<string>();
  /** Up to which version the cache was, when we were told. */
  readonly #toldUpTo = new Map<ObjectKey, string>();
  readonly #told = new Set<string>();
  /** Versions that we made, and know that we did. */
  readonly #own = new Map<string, ObjectKey>();
  /** What we are writing, and have watched all the time. */
  readonly #writing = new Set<ObjectKey>();
  /** How to end the writes under way. */
  readonly #endWrites = new Map<ObjectKey, ReturnType<ResourceView["beginWrite"]>>();
  readonly #deleted = new Set<string>();
  readonly #detached = new Set<string | undefined>();
  readonly #server: SimulatedServer;
  readonly #goneSince: ReadonlyMap<ObjectKey, string>;

  constructor(
    part: number,
    { server, goneSince }: { server: SimulatedServer; goneSince: ReadonlyMap<ObjectKey, string> },
  ) {
    this.part = part;
    this.#server = server;
    this.#goneSince = goneSince;
    this.view.onChange((change) => this.#onChange(change));
  }

  read(key: ObjectKey): Simulated | undefined {
    return this.view.get(key)?.object as Simulated | undefined;
  }

  isAttached(namespace: string | undefined): boolean {
    return !this.#detached.has(namespace);
  }

  isWatching(key: ObjectKey): boolean {
    return this.isAttached(undefined) && this.isAttached(refOfKey(key).namespace);
  }

  /** Whoever writes has read what the cache had: nobody needs to be told of that any more. */
  forgetRead(key: ObjectKey, read: Simulated | undefined): void {
    if (read !== undefined) this.#forgetUpTo(key, versionOf(read));
  }

  /** Nobody can be told of what came and went before the list of this version. */
  forgetUnseen(uids: ReadonlySet<string>, version: string): void {
    this.#forget(({ uid, version: theirs }) => uids.has(uid) && compareResourceVersions(theirs, version) <= 0);
  }

  beginWrite(key: ObjectKey): void {
    this.#writing.add(key);
    this.#endWrites.set(key, this.view.beginWrite(key));
  }

  /** Returns how to end the deletion. */
  beginDelete(key: ObjectKey, { metadata: { uid = "" } }: Simulated): (isGone: boolean) => void {
    const end = this.view.beginDeletion(key, uid);
    return (isGone) => {
      if (isGone) this.#deleted.add(uid);
      end({ isGone });
    };
  }

  /** What we wrote without knowing is told like the change of somebody else. */
  endLostWrite(key: ObjectKey, object: Simulated | undefined): void {
    // Without a window it may have been told already, and with the deletion it was.
    const isTold = compareResourceVersions(this.#toldUpTo.get(key) ?? "0", object ? versionOf(object) : "0") >= 0;
    if (object !== undefined && this.#writing.has(key) && !isTold)
      this.theirs.push({ key, version: versionOf(object), uid: object.metadata.uid! });
    this.#writing.delete(key);
    this.#endWrites.get(key)!();
  }

  endWrite(
    key: ObjectKey,
    { object, before, wasCreated }: { object: Simulated; before: Simulated | undefined; wasCreated: boolean },
  ): void {
    const isProven = before !== undefined && versionOf(before) !== versionOf(object) && this.#isSame(before, object);
    const isOwn = wasCreated || isProven;
    // It is the answer to a write that was lost before.
    if (isOwn) this.#forget(({ version }) => version === versionOf(object));
    if (isOwn && this.#writing.delete(key)) this.#own.set(versionOf(object), key);
    // What we made from nothing has nothing of others left in it.
    if (wasCreated) this.#forgetUpTo(key, versionOf(object));
    this.#endWrites.get(key)!({ entry: entryOf(object), isOwn });
  }

  /** Checks that what was written is read, or something newer. */
  checkReads(key: ObjectKey, written: Simulated): void {
    const read = this.read(key);
    assert.ok(
      read !== undefined && compareResourceVersions(versionOf(read), versionOf(written)) >= 0,
      `${key}@${versionOf(written)} is read back`,
    );
  }

  detach(namespace: string | undefined): void {
    const told = this.notes.length;
    this.#detached.add(namespace);
    this.view.detach(namespace);
    assert.is(this.notes.length, told, "nobody is told of what is no longer watched");
    // Its echoes may come when it is watched again.
    for (const [version, key] of this.#own) if (!this.isWatching(key)) this.#own.delete(version);
    for (const key of this.#writing) if (!this.isWatching(key)) this.#writing.delete(key);
    for (const key of this.view.keys()) assert.ok(this.isWatching(key), `${key} is known and not watched`);
  }

  /** `version` is how far the watch is. */
  attach(cache: ResourceCache, { namespace, version }: { namespace: string | undefined; version: string }): void {
    this.#detached.delete(namespace);
    const told = this.notes.length;
    this.view.attach(cache, namespace);
    const names = this.notes.slice(told).map((note) => /^added (\S+)@/.exec(note)?.[1]);
    assert.equal(new Set(names), new Set([...cache.observed].map(([key]) => key)), "all that is known is told");
    this.#forget((theirs) => this.isWatching(theirs.key) && compareResourceVersions(theirs.version, version) <= 0);
  }

  /** Checks that the index agrees with what is read; returns that. */
  checkIndex(): { readonly key: ObjectKey; readonly object: Simulated }[] {
    const known = [...this.view.keys()].map((key) => ({ key, object: this.read(key)! }));
    for (const sum of new Set(known.map(({ object }) => sumOf(object)))) {
      const wanted = known.filter(({ object }) => sumOf(object) === sum).map(({ key }) => key);
      assert.equal([...this.view.keysByIndex("sum", sum)].sort(), wanted.sort());
    }
    return known;
  }

  /** Checks what holds when everything has arrived. */
  checkSettled(): void {
    const versions = new Map([...this.view.keys()].map((key) => [key, versionOf(this.read(key)!)]));
    assert.equal(versions, new Map([...this.#server.objects].map(([key, object]) => [key, versionOf(object)])));
    assert.is(this.view.ownWrites, 0, "no echo is awaited any more");
    const untold = this.theirs.filter(({ uid }) => !this.#deleted.has(uid));
    assert.equal(untold, [], "changes of others that nobody was told of");
  }

  #onChange(change: ResourceChange): void {
    const { kind, key, object } = change;
    this.notes.push(`${kind} ${key}@${object.metadata.resourceVersion}`);
    if (kind !== "deleted") assert.not(this.#isEchoAlone(change), `told of our own write of ${key} alone`);
    this.#told.add(versionOf(object));
    const read = this.read(key);
    const version = read === undefined ? this.#goneSince.get(key) : versionOf(read);
    // Whoever reads the cache now sees every change up to this version.
    if (version === undefined) return;
    this.#toldUpTo.set(key, version);
    this.#forgetUpTo(key, version);
  }

  // Whether the watch brought it, and there is nothing in it but what we know that we wrote.
  #isEchoAlone({ key, object, old }: ResourceChange): boolean {
    const versions = this.#server.log.flatMap((entry) => (entry.key === key ? versionOf(entry.object) : []));
    const last = versions.indexOf(versionOf(object));
    // What was held back and merged is the state before, if there was none.
    const isToldBefore = old !== undefined && this.#told.has(versionOf(old));
    const first = old === undefined ? last : versions.indexOf(versionOf(old)) + (isToldBefore ? 1 : 0);
    const covered = versions.slice(first, last + 1);
    // That it was deleted before may have been held back, and only a list has told it.
    if (old === undefined && this.listed.has(versions[last - 1] ?? "")) return false;
    return covered.every((version) => this.#own.has(version) && !this.listed.has(version));
  }

  #isSame(before: Simulated, after: Simulated): boolean {
    const isSamePart = (value: number, part: number) => part === this.part || value === before.parts[part];
    return before.metadata.uid === after.metadata.uid && after.parts.every(isSamePart);
  }

  #forgetUpTo(key: ObjectKey, version: string): void {
    this.#forget((theirs) => theirs.key === key && compareResourceVersions(theirs.version, version) <= 0);
  }

  #forget(isDone: (theirs: Theirs) => boolean): void {
    this.theirs = this.theirs.filter((theirs) => !isDone(theirs));
  }
}

function sumOf({ parts }: Simulated): string {
  return `${parts.reduce((sum, part) => sum + part, 0) % 3}`;
}
