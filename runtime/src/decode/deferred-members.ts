// Objects of which some members stay JSON text until one of them is read: most members that a watch brings are never read. A deferred member is an enumerable accessor of the object; the first access turns all of them into plain members. Only property descriptors
// and console.log show the difference. A cache freezes every object that it returns, which makes it plain (see deep-freeze.ts).

type Members = Readonly<Record<string, unknown>>;

/** The texts of an object that was not parsed as a whole. Equal states share it. */
export interface Deferred {
  readonly names: readonly string[];
  /** The JSON text of an object with these members. */
  readonly text: string;
  readonly isAscii: boolean;
}

/** Of each object that is not plain its texts, or the members that still have an accessor, as it was frozen before they were parsed. */
const states = new WeakMap<object, Deferred | { readonly members: Members }>();

interface Accessor extends PropertyDescriptor {
  get(this: object): unknown;
  set(this: object, value: unknown): void;
}

// Shared accessors give objects of one kind the same hidden class. A process sees few names.
const accessors = new Map<string, Accessor>();

/** Adds members to an object that are parsed when one of them is read. */
export function deferMembers(object: object, deferred: Deferred): void {
  states.set(object, deferred);
  for (const name of deferred.names) Object.defineProperty(object, name, accessorOf(name));
}

/** Returns the texts of an object whose members are still to be parsed. */
export function deferredOf(object: object): Deferred | undefined {
  const state = states.get(object);
  return state !== undefined && "text" in state ? state : undefined;
}

/** Parses the deferred members of an object, which makes it plain. */
export function completeObject(object: object): void {
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
  if (isPlain) states.delete(object);
  else states.set(object, { members });
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
      const state = states.get(owner);
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
function ownerOf(object: object): object {
  for (let owner: object | null = object; owner !== null; owner = Object.getPrototypeOf(owner) as object | null)
    if (states.has(owner)) return owner;
  throw new TypeError(
    "a member of a Kubernetes object cannot be read through a proxy before it was read from the object",
  );
}
