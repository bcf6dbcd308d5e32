// A server, its watch, and controllers that write, for the properties of caches and views. What a write answers and what the watch
// delivers take different ways, so that either may come first; the watch itself keeps its order and may be replaced by a list.
import { keyOf, refOfKey, type ObjectKey, compareResourceVersions } from "#runtime/base/kubernetes-object.js";
import { ResourceCache } from "#runtime/cache/resource-cache.js";
import type { ResourceView } from "#runtime/cache/resource-view.js";
import { assert } from "../../../support/suite.js";
import { SimulatedController } from "./simulated-controller.js";
import { entryOf, SimulatedServer, versionOf, type Simulated } from "./simulated-server.js";

interface Request {
  readonly kind: "write" | "delete";
  readonly by: SimulatedController;
  readonly key: ObjectKey;
  readonly value: number;
  readonly before: Simulated | undefined;
  /** Ends a deletion. */
  readonly end?: (isGone: boolean) => void;
  answer?: { readonly object: Simulated | undefined; readonly wasCreated: boolean; readonly isNew: boolean };
}

/** What one list-watch follows. */
interface Scope {
  readonly namespace: string | undefined;
  readonly cache: ResourceCache;
  /** How many entries of the log the watch has passed. */
  position: number;
  snapshot: { readonly entries: Simulated[]; readonly version: string; readonly position: number } | undefined;
}

/** The simulation: each method is one thing that may happen, in any order; it does nothing where it makes no sense. */
export class SimulatedWatch {
  readonly controllers: readonly SimulatedController[];
  readonly #server: SimulatedServer;
  readonly #scopes: readonly Scope[];
  #requests: Request[] = [];
  /** The uids that a cache ever had. */
  readonly #seen = new Set<string>();
  /** The deletion that a cache was told of last, by key. */
  readonly #goneSince = new Map<ObjectKey, string>();
  readonly #deletedByUs = new Set<string>();

  constructor({ namespaces, controllers = 1 }: { namespaces?: readonly string[]; controllers?: number } = {}) {
    this.#server = new SimulatedServer(controllers + 1);
    this.#scopes = (namespaces ?? [undefined]).map((namespace) => ({
      namespace,
      cache: new ResourceCache(),
      position: 0,
      snapshot: undefined,
    }));
    this.controllers = Array.from(
      { length: controllers },
      (_, part) => new SimulatedController(part, { server: this.#server, goneSince: this.#goneSince }),
    );
    for (const { cache, namespace } of this.#scopes) {
      for (const { view } of this.controllers) view.attach(cache, namespace);
      cache.beginReplace();
      cache.endReplace(this.#server.version);
    }
  }

  /** What the first controller was told. */
  get notes(): readonly string[] {
    return this.controllers[0]!.notes;
  }

  /** What the first controller sees. */
  get view(): ResourceView {
    return this.controllers[0]!.view;
  }

  /** Somebody else creates or changes an object. */
  changeByOthers(key: ObjectKey): void {
    const part = this.controllers.length;
    const object = this.#server.write(key, part, (this.#server.objects.get(key)?.parts[part] ?? 0) + 1);
    this.#announce(key, versionOf(object), object.metadata.uid!);
  }

  /** Somebody else deletes an object. */
  deleteByOthers(key: ObjectKey): void {
    const live = this.#server.objects.get(key);
    if (live !== undefined) this.#announce(key, this.#server.remove(key), live.metadata.uid!);
  }

  /** A controller begins to write an object, knowing what its view knows. */
  beginWrite(key: ObjectKey, value: number, by = 0): void {
    const controller = this.#controller(by);
    const before = controller.read(key);
    if (this.#isBusy(key, controller) || !controller.isWatching(key) || before?.parts[controller.part] === value)
      return;
    controller.forgetRead(key, before);
    controller.beginWrite(key);
    this.#requests.push({ kind: "write", by: controller, key, value, before });
  }

  /** A controller begins to delete the object that its view knows. */
  beginDelete(key: ObjectKey, by = 0): void {
    const controller = this.#controller(by);
    const before = controller.read(key);
    if (before === undefined || this.#isBusy(key, controller)) return;
    controller.forgetRead(key, before);
    const end = controller.beginDelete(key, before);
    this.#requests.push({ kind: "delete", by: controller, key, value: 0, before, end });
  }

  /** A request reaches the server. */
  execute(index: number): void {
    const request = this.#requests[index % (this.#requests.length || 1)];
    if (request === undefined || request.answer !== undefined) return;
    const { kind, by, key, value, before } = request;
    const live = this.#server.objects.get(key);
    const none = { object: undefined, wasCreated: false, isNew: false };
    if (kind === "delete") {
      request.answer = none;
      // A precondition on the uid keeps it from deleting what was made anew.
      if (live !== undefined && live.metadata.uid === before?.metadata.uid)
        this.#announce(key, this.#server.remove(key), live.metadata.uid!, by);
    } else if (live?.parts[by.part] === value) request.answer = { ...none, object: live };
    else {
      const object = this.#server.write(key, by.part, value);
      this.#announce(key, versionOf(object), object.metadata.uid!, by);
      request.answer = { object, wasCreated: live === undefined, isNew: true };
    }
  }

  /** The answer to a request arrives, or is lost. */
  finish(index: number, { isLost }: { isLost: boolean }): void {
    const request = this.#requests[index % (this.#requests.length || 1)];
    if (request?.answer === undefined) return;
    this.#requests = this.#requests.filter((other) => other !== request);
    const { kind, by, key, before, answer } = request;
    if (kind === "delete") {
      const isGone = !isLost && by.isWatching(key);
      if (isGone) this.#deletedByUs.add(before!.metadata.uid!);
      request.end!(isGone);
    } else if (answer.object === undefined || isLost) {
      const isToBeTold = answer.object !== undefined && answer.isNew && !this.#isPassedUnseen(key, answer.object);
      by.endLostWrite(key, isToBeTold ? answer.object : undefined);
    } else {
      const isRead = this.#isGone(key, answer.object) || !by.isWatching(key);
      by.endWrite(key, { object: answer.object, before, wasCreated: answer.wasCreated });
      if (!isRead) by.checkReads(key, answer.object);
    }
    this.#check();
  }

  /** A watch delivers its next event, or a bookmark if it has none. */
  deliver(index: number): void {
    const scope = this.#scope(index);
    if (scope.snapshot !== undefined) return;
    const event = this.#server.log[scope.position];
    if (event === undefined) return scope.cache.observeVersion(this.#server.version);
    scope.position++;
    if (!isInScope(event.key, scope)) return this.deliver(index);
    const version = versionOf(event.object);
    if (event.type === "DELETED") {
      this.#goneSince.set(event.key, version);
      scope.cache.observeDeletion(structuredClone(event.object));
    } else scope.cache.observe(scope.cache.getVersion(keyOf(event.object.metadata), version) ?? entryOf(event.object));
    this.#check();
  }

  /** A watch breaks, and the server takes a snapshot for a list. */
  beginList(index: number): void {
    const scope = this.#scope(index);
    if (scope.snapshot !== undefined) return;
    const entries = [...this.#server.objects].flatMap(([key, object]) => (isInScope(key, scope) ? [object] : []));
    scope.snapshot = { entries, version: this.#server.version, position: this.#server.log.length };
    scope.cache.beginReplace();
  }

  /** The list arrives, and the watch goes on behind it. */
  endList(index: number): void {
    const scope = this.#scope(index);
    const { snapshot, position } = scope;
    if (snapshot === undefined) return;
    const passed = this.#server.log.slice(position, snapshot.position).filter(({ key }) => isInScope(key, scope));
    for (const { key, object, type } of passed) if (type === "DELETED") this.#goneSince.set(key, versionOf(object));
    scope.snapshot = undefined;
    scope.position = snapshot.position;
    // Of what came and went unseen between two lists nobody can know.
    const known = new Set([...this.#seen, ...snapshot.entries.map(({ metadata }) => metadata.uid)]);
    const unseen = new Set(
      passed.flatMap(({ object: { metadata } }) => (known.has(metadata.uid) ? [] : metadata.uid!)),
    );
    for (const controller of this.controllers) {
      controller.forgetUnseen(unseen, snapshot.version);
      for (const { object } of passed) controller.listed.add(versionOf(object));
    }
    for (const object of snapshot.entries)
      if (!scope.cache.observeKnown(keyOf(object.metadata), versionOf(object))) scope.cache.observe(entryOf(object));
    scope.cache.endReplace(snapshot.version);
    this.#check();
  }

  /** A controller stops, or begins again, to watch one namespace, or all. */
  toggle(index: number, by = 0): void {
    const { namespace, cache, position } = this.#scope(index);
    const passed = this.#server.log.slice(0, position).at(-1);
    const controller = this.#controller(by);
    if (controller.isAttached(namespace)) controller.detach(namespace);
    else controller.attach(cache, { namespace, version: passed === undefined ? "0" : versionOf(passed.object) });
  }

  /** Lets everything arrive, and checks what holds then. */
  settle(): void {
    this.controllers.forEach((controller, by) =>
      this.#scopes.forEach(({ namespace }, index) => controller.isAttached(namespace) || this.toggle(index, by)),
    );
    while (this.#requests.length > 0) {
      this.execute(0);
      this.finish(0, { isLost: false });
    }
    this.#scopes.forEach((scope, index) => {
      this.endList(index);
      while (scope.position < this.#server.log.length) this.deliver(index);
      this.deliver(index);
      assert.not(scope.cache.expectsOwn, "every own version has come or never will");
      assert.is(scope.cache.counts.ownDeletions, 0, "every own deletion has come or never will");
    });
    for (const controller of this.controllers) controller.checkSettled();
  }

  #announce(key: ObjectKey, version: string, uid: string, by?: SimulatedController): void {
    for (const controller of this.controllers) if (controller !== by) controller.theirs.push({ key, version, uid });
  }

  // A controller makes one request after the other for each object.
  #isBusy(key: ObjectKey, by: SimulatedController): boolean {
    return this.#requests.some((request) => request.key === key && request.by === by);
  }

  // Whether it came and went between two lists.
  #isPassedUnseen(key: ObjectKey, object: Simulated): boolean {
    const { position } = this.#scopes.find((scope) => isInScope(key, scope))!;
    const at = this.#server.log.findIndex((entry) => versionOf(entry.object) === versionOf(object));
    return at < position && !this.#seen.has(object.metadata.uid!);
  }

  #isGone(key: ObjectKey, { metadata: { uid = "", resourceVersion = "" } }: Simulated): boolean {
    const goneSince = this.#goneSince.get(key) ?? "0";
    return this.#deletedByUs.has(uid) || compareResourceVersions(goneSince, resourceVersion) > 0;
  }

  #check(): void {
    for (const controller of this.controllers)
      for (const { key, object } of controller.checkIndex()) {
        this.#seen.add(object.metadata.uid!);
        assert.not(this.#isGone(key, object), `${key}@${versionOf(object)} is back from the dead`);
      }
  }

  #scope(index: number): Scope {
    return this.#scopes[index % this.#scopes.length]!;
  }

  #controller(index: number): SimulatedController {
    return this.controllers[index % this.controllers.length]!;
  }
}

function isInScope(key: ObjectKey, { namespace }: Scope): boolean {
  return namespace === undefined || refOfKey(key).namespace === namespace;
}
