import { keyOf, type KubernetesObject, type ObjectKey, type ObjectMeta } from "../../base/kubernetes-object.js";
import { uidOf, type DecodedResource } from "../../base/decoded-resource.js";
import type { WriteTarget } from "../../write/send/apply-matcher.js";
import type { Sender } from "../../write/send/send.js";
import { ownTypes, type WithConditions } from "./status-conditions.js";

/** What a field manager wrote of a status. */
interface OwnPart {
  readonly fieldManager: string;
  /** Tells whether there is anything of it. */
  isIn(entry: DecodedResource): boolean;
  /** Tells whether nobody took over a field of the part between two states. */
  isHeld(before: DecodedResource, after: DecodedResource): boolean;
  /** Tells whether the fields of a part that is held have the same values. */
  isSame(before: DecodedResource, after: DecodedResource): boolean;
}

interface Known {
  readonly uid: string | undefined;
  /** What the last own write left, or what the last reconcile began with, of each part; undefined if that is nothing, or not known. */
  readonly states: (DecodedResource | undefined)[];
  /** Whether a reconcile is under way. */
  isRunning: boolean;
}

/** What a controller itself wrote into the statuses of its primaries: tells when somebody else overwrites it. */
export class OwnStatus {
  readonly #parts: readonly OwnPart[];
  readonly #known = new Map<ObjectKey, Known>();

  constructor(parts: readonly OwnPart[]) {
    this.#parts = parts;
  }

  /** Takes the state with which a reconcile begins: what is overwritten in it is for this reconcile to put right. */
  begin(entry: DecodedResource): void {
    const { metadata } = entry.object;
    const state = statusIn(entry);
    const states = this.#parts.map((part) => (part.isIn(state) ? state : undefined));
    this.#known.set(keyOf(metadata), { uid: metadata.uid, states, isRunning: true });
  }

  /** Ends a reconcile. Until then nobody knows which values the client of the user writes. */
  end({ metadata }: KubernetesObject): void {
    const known = this.#knownOf(metadata);
    if (known !== undefined) known.isRunning = false;
  }

  /** Takes note of an own write of the status of a primary, with the answer if that is known. */
  note({ metadata }: KubernetesObject, fieldManager: string, answer?: DecodedResource): void {
    const known = this.#knownOf(metadata);
    const index = this.#parts.findIndex((part) => part.fieldManager === fieldManager);
    // The answer may be that of another object.
    const isOf = answer === undefined || uidOf(answer) === metadata.uid;
    if (known !== undefined && index >= 0 && isOf) known.states[index] = answer && statusIn(answer);
  }

  /** Tells whether the own part of a status is another one than the controller wrote, or than its last reconcile found. */
  isOverwritten(entry: DecodedResource): boolean {
    const { states = [], isRunning = true } = this.#knownOf(entry.object.metadata) ?? {};
    return states.some((state, at) => {
      const part = this.#parts[at]!;
      return state !== undefined && !(part.isHeld(state, entry) && (isRunning || part.isSame(state, entry)));
    });
  }

  release(key: ObjectKey): void {
    this.#known.delete(key);
  }

  #knownOf(metadata: ObjectMeta): Known | undefined {
    const known = this.#known.get(keyOf(metadata));
    return known?.uid === metadata.uid ? known : undefined;
  }
}

// The rest of an object is replaced by the next state, and not kept beside that.
function statusIn({ object, owned = [] }: DecodedResource): DecodedResource {
  const { apiVersion, kind, metadata, status } = object as WithConditions;
  return { object: { apiVersion, kind, metadata, status } as KubernetesObject, owned };
}

interface OwnWriters {
  readonly sender: Sender;
  readonly conditionsSender: Sender | undefined;
  readonly serverSideApply: boolean;
  /** The names of all dependents. */
  readonly dependents: readonly string[];
}

/** Creates the own statuses of a controller. */
export function createOwnStatus(target: WriteTarget, { sender, conditionsSender, ...rest }: OwnWriters): OwnStatus {
  const senders = [sender, conditionsSender ?? []].flat();
  if (rest.serverSideApply) return new OwnStatus(senders.map((each) => appliedPart(target, each)));
  // Nothing but the types of conditions tells whose a field is.
  const types = ownTypes(rest.dependents);
  return new OwnStatus(conditionsSender === undefined ? [] : [conditionPart(conditionsSender, types)]);
}

// Whoever overwrites a field that was applied takes it over. An own write that was given up, and lands late, takes nothing over: its values tell.
function appliedPart(target: WriteTarget, { fieldManager, matcher }: Sender): OwnPart {
  const fieldsIn = (entry: DecodedResource) => matcher.ownedFields(entry, "status")?.fieldsV1;
  return {
    fieldManager,
    isIn: (entry) => fieldsIn(entry) !== undefined,
    isHeld: (before, after) => fieldsIn(before) === fieldsIn(after),
    isSame: (before, after) => matcher.isSameStatus(target, before, after),
  };
}

function conditionPart({ fieldManager }: Sender, types: ReadonlySet<string>): OwnPart {
  const textOf = ({ object }: DecodedResource) =>
    JSON.stringify((object as WithConditions).status?.conditions?.filter(({ type }) => types.has(type)));
  const isHeld = (before: DecodedResource, after: DecodedResource) => textOf(before) === textOf(after);
  return { fieldManager, isIn: () => true, isHeld, isSame: () => true };
}
