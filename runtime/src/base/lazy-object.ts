// Objects with members that stay JSON text until one of them is read. Most members of watched objects are never read. A deferred member is an
// enumerable accessor property; the first access replaces all of them by data properties. The difference is visible only in property descriptors and
// console.log. Caches freeze every object that they return, which parses it completely (deepFreeze).

/** A constructor that returns its argument, so that a subclass can add a private field to that object. */
const Adopt = function (object: object) {
  return object;
} as unknown as new (object: object) => object;

type Members = Readonly<Record<string, unknown>>;

/** The JSON text of an object that was not parsed completely. Equal states share it. */
export interface Deferred {
  readonly names: readonly string[];
  /** The JSON text of an object with the deferred members. */
  readonly text: string;
  readonly isAscii: boolean;
  /**
   * The JSON text of an object with the members up to the metadata, if every name occurs in it once. Its resourceVersion may be that of an earlier
   * state.
   */
  readonly head?: string | undefined;
}

type State = Deferred | { readonly members: Members } | undefined;

/** Stores the deferred state in a private field of the object, so that no property reveals it. */
class Deferring extends Adopt {
  // A single field usually fits into the object without more memory. `members` belongs to an object that was frozen before: its accessors cannot be
  // replaced.
  #state: State;

  constructor(object: object, deferred: Deferred) {
    super(object);
    this.#state = deferred;
  }

  static has(object: object): object is Deferring {
    return #state in object;
  }

  static stateOf(object: object): State {
    return #state in object ? object.#state : undefined;
  }

  /** Marks an object as parsed. `members` are those that still have an accessor. */
  static complete(object: object, members: Members | undefined): void {
    if (#state in object) object.#state = members && { members };
  }
}

interface Accessor extends PropertyDescriptor {
  get(this: object): unknown;
  set(this: object, value: unknown): void;
}

// With shared accessors, objects of one kind share a hidden class. The number of distinct names in a process is small.
const accessors = new Map<string, Accessor>();

/** Adds members to an object that are parsed when one of them is first read. */
export function deferMembers(object: object, deferred: Deferred): void {
  new Deferring(object, deferred);
  for (const name of deferred.names) Object.defineProperty(object, name, accessorOf(name));
}

/** Returns the deferred text of an object, or undefined if all its members have been parsed. */
export function deferredOf(object: object): Deferred | undefined {
  const state = Deferring.stateOf(object);
  return state !== undefined && "text" in state ? state : undefined;
}

/** Parses the deferred members of an object and turns them into data properties. */
function completeObject(object: object): void {
  const deferred = deferredOf(object);
  if (deferred === undefined) return;
  const members = JSON.parse(deferred.text) as Members;
  let isPlain = true;
  for (const name of deferred.names) {
    const current = Object.getOwnPropertyDescriptor(object, name);
    // The member may have been deleted or replaced.
    if (current?.get === undefined || current.get !== accessors.get(name)?.get) continue;
    if (current.configurable === true) defineMember(object, name, members[name]);
    else isPlain = false;
  }
  Deferring.complete(object, isPlain ? undefined : members);
}

function defineMember(object: object, name: string, value: unknown): void {
  Object.defineProperty(object, name, { value, writable: true, enumerable: true, configurable: true });
}

function accessorOf(name: string): Accessor {
  const known = accessors.get(name);
  if (known !== undefined) return known;
  const accessor: Accessor = {
    enumerable: true,
    configurable: true,
    get() {
      const owner = ownerOf(this);
      completeObject(owner);
      const state = Deferring.stateOf(owner);
      return (state !== undefined && "members" in state ? state.members : (owner as unknown as Members))[name];
    },
    set(value) {
      completeObject(ownerOf(this));
      defineMember(this, name, value);
    },
  };
  accessors.set(name, accessor);
  return accessor;
}

// `this` may be an object that inherits the accessor.
function ownerOf(object: object): Deferring {
  for (let owner: object | null = object; owner !== null; owner = Object.getPrototypeOf(owner) as object | null)
    if (Deferring.has(owner)) return owner;
  throw new TypeError(
    "a member of a Kubernetes object cannot be read through a proxy before it was read from the object",
  );
}

/** Freezes a JSON value recursively, unless it is already frozen. Parses deferred members first. */
export function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  completeObject(value);
  freezeAll(value);
}

function freezeAll(value: object): void {
  Object.freeze(value);
  for (const name in value) {
    const part = (value as { readonly [name: string]: unknown })[name];
    if (typeof part === "object" && part !== null && !Object.isFrozen(part)) freezeAll(part);
  }
}
