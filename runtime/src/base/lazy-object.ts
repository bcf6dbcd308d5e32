// Objects of which some members stay JSON text until one of them is read: most members that a watch brings are never read. A deferred member is
// an enumerable accessor of the object; the first access turns all of them into plain members. Only property descriptors and console.log show
// the difference. A cache freezes every object that it returns, which makes it plain (deepFreeze).

/** Returns its argument, so that a subclass puts its private field on that object. */
const Adopt = function (object: object) {
  return object;
} as unknown as new (object: object) => object;

type Members = Readonly<Record<string, unknown>>;

/** The texts of an object that was not parsed as a whole. Equal states share it. */
export interface Deferred {
  readonly names: readonly string[];
  /** The JSON text of an object with these members. */
  readonly text: string;
  readonly isAscii: boolean;
  /** The JSON text of an object with the members up to the metadata, if each name is there once; its version may be that of an earlier state. */
  readonly head?: string | undefined;
}

type State = Deferred | { readonly members: Members } | undefined;

/** Puts the deferred state into a private field of an object, where no property shows it. */
class Deferring extends Adopt {
  // One field mostly fits into the object itself. Members are those of an object that was frozen before: its accessors cannot be replaced.
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

  /** Marks an object as parsed; `members` are those that still have an accessor. */
  static complete(object: object, members: Members | undefined): void {
    if (#state in object) object.#state = members && { members };
  }
}

interface Accessor extends PropertyDescriptor {
  get(this: object): unknown;
  set(this: object, value: unknown): void;
}

// Shared accessors give objects of one kind the same hidden class. A process sees few names.
const accessors = new Map<string, Accessor>();

/** Adds members to an object that are parsed when one of them is read. */
export function deferMembers(object: object, deferred: Deferred): void {
  new Deferring(object, deferred);
  for (const name of deferred.names) Object.defineProperty(object, name, accessorOf(name));
}

/** Returns the texts of an object whose members are still to be parsed. */
export function deferredOf(object: object): Deferred | undefined {
  const state = Deferring.stateOf(object);
  return state !== undefined && "text" in state ? state : undefined;
}

/** Parses the deferred members of an object, which makes it plain. */
function completeObject(object: object): void {
  const deferred = deferredOf(object);
  if (deferred === undefined) return;
  const members = JSON.parse(deferred.text) as Members;
  let isPlain = true;
  for (const name of deferred.names) {
    const current = Object.getOwnPropertyDescriptor(object, name);
    // A reader may have deleted or replaced the member.
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

/** Freezes a JSON value with all its parts, unless it is frozen already; what was not parsed of it is. */
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
