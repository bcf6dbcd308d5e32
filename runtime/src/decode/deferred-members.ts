// Objects of which some members stay JSON text until somebody reads one of them: most of what a watch brings is never read.
//
// Such a member is an accessor of the object itself, enumerable and in its place, so that whoever reads, writes, lists, copies or compares
// the object sees a plain one; the first of them turns all accessors into plain members. Only descriptors show the difference, and what
// prints them, such as console.log: everything that a cache hands out is frozen, and therefore plain, before (see deep-freeze.ts).

/** Returns the object that it is given, so that a private field of a subclass is put on that. */
const Adopt = function (object: object) {
  return object;
} as unknown as new (object: object) => object;

interface Members {
  readonly [name: string]: unknown;
}

/** What is kept of an object that was not parsed as a whole; states of an object that have the same keep it once. */
export interface Deferred {
  /** The names of the members that were not parsed. */
  readonly names: readonly string[];
  /** The text of an object that has these members. */
  readonly text: string;
  /** What the rest was parsed from, up to the closing brace of the metadata: before and behind the resource version. */
  readonly before: string;
  readonly behind: string;
  readonly isAscii: boolean;
}

/** What was parsed of members of which an accessor could not be replaced by what it stands for. */
class ParsedMembers {
  readonly members: Members;

  constructor(members: Members) {
    this.members = members;
  }
}

/** An object with members that were not parsed. No property tells of it, and it goes with the object. */
class Deferring extends Adopt {
  // One field, for which V8 mostly has room in the object itself.
  #state: Deferred | ParsedMembers | undefined;

  constructor(object: object, deferred: Deferred) {
    super(object);
    this.#state = deferred;
  }

  static has(object: object): object is Deferring {
    return #state in object;
  }

  static deferredOf(object: object): Deferred | undefined {
    if (!(#state in object)) return undefined;
    const state = object.#state;
    return state instanceof ParsedMembers ? undefined : state;
  }

  static membersOf(object: Deferring): Members | undefined {
    const state = object.#state;
    return state instanceof ParsedMembers ? state.members : undefined;
  }

  /** Takes that there is nothing deferred any more, but for the members that still have an accessor. */
  static complete(object: object, members: Members | undefined): void {
    if (#state in object) object.#state = members && new ParsedMembers(members);
  }
}

interface Accessor extends PropertyDescriptor {
  get(this: object): unknown;
  set(this: object, value: unknown): void;
}

// Objects of one kind have the same accessors, and so the same hidden class; a process sees few names.
const accessors = new Map<string, Accessor>();

/** Gives `object` members that are parsed when one of them is read; it has none of them yet. */
export function deferMembers(object: object, deferred: Deferred): void {
  new Deferring(object, deferred);
  for (const name of deferred.names) Object.defineProperty(object, name, accessorOf(name));
}

/** Returns what was deferred of an object and is still to be parsed. */
export function deferredOf(object: object): Deferred | undefined {
  return Deferring.deferredOf(object);
}

/** Parses what was deferred of an object, which is plain then. */
export function completeObject(object: object): void {
  const deferred = deferredOf(object);
  if (deferred === undefined) return;
  const members = JSON.parse(deferred.text) as Members;
  let isPlain = true;
  for (const name of deferred.names) {
    const current = Object.getOwnPropertyDescriptor(object, name);
    // Whoever was given the object may have taken the member away, or put another one there.
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
  let accessor = accessors.get(name);
  if (accessor === undefined) accessors.set(name, (accessor = createAccessor(name)));
  return accessor;
}

function createAccessor(name: string): Accessor {
  return {
    enumerable: true,
    configurable: true,
    get() {
      const owner = ownerOf(this);
      completeObject(owner);
      const members = Deferring.membersOf(owner);
      return members === undefined ? (owner as unknown as Members)[name] : members[name];
    },
    set(value) {
      completeObject(ownerOf(this));
      defineMember(this, name, value);
    },
  };
}

// An accessor may be called on an object that inherits it.
function ownerOf(object: object): Deferring {
  for (let owner: object | null = object; owner !== null; owner = Object.getPrototypeOf(owner) as object | null)
    if (Deferring.has(owner)) return owner;
  throw new TypeError(
    "a member of a Kubernetes object cannot be read through a proxy before it was read from the object",
  );
}
