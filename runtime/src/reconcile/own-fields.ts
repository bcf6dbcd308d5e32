import { keyOf, type KubernetesObject, type ObjectKey, type ObjectMeta } from "../base/kubernetes-object.js";
import { uidOf, type DecodedResource } from "../base/decoded-resource.js";
import type { Application, WriteTarget } from "../write/send/apply-matcher.js";
import type { OwnWrite } from "../write/send/postponed-write.js";
import type { Sender } from "../write/send/send.js";
import type { ConditionTypes } from "./status/condition-types.js";
import type { WithConditions } from "./status/status-conditions.js";

/** Which fields a part has, and their values, in texts that are kept for each primary. */
interface Reading {
  readonly fields: string;
  readonly values: string;
}

/** What a field manager wrote of an object, or of its status. */
interface OwnPart {
  readonly fieldManager: string;
  readonly part: Application["part"];
  /** Returns undefined if there is nothing of it. */
  read(entry: DecodedResource): Reading | undefined;
}

interface Known {
  readonly uid: string | undefined;
  /** What the last own write left, or what the last reconcile began with, of each part; undefined if that is nothing, or not known. */
  readonly readings: (Reading | undefined)[];
  /** Whether a reconcile is under way. */
  isRunning: boolean;
}

interface Writers {
  readonly sender: Sender;
  readonly conditionsSender: Sender | undefined;
  readonly serverSideApply: boolean;
  readonly conditionTypes: ConditionTypes;
}

/** What a controller itself wrote of its primaries: tells when somebody else overwrites it. */
export class OwnFields {
  readonly #parts: readonly OwnPart[];
  readonly #serverSideApply: boolean;
  readonly #known = new Map<ObjectKey, Known>();

  constructor(target: WriteTarget, { sender, conditionsSender, serverSideApply, conditionTypes }: Writers) {
    this.#serverSideApply = serverSideApply;
    const applied = (by: Sender, part: OwnPart["part"]) => appliedPart(by, { target, part });
    const conditionsOf = (by: Sender) =>
      // Of what was not applied, nothing but the types of conditions tells whose a field is.
      serverSideApply ? applied(by, "status") : conditionPart(by, conditionTypes.all);
    this.#parts = [
      ...(serverSideApply ? [applied(sender, "status"), applied(sender, "object")] : []),
      ...(conditionsSender === undefined ? [] : [conditionsOf(conditionsSender)]),
    ];
  }

  /** Takes the state with which a reconcile begins: what is overwritten in it is for this reconcile to put right. */
  begin(entry: DecodedResource): void {
    const { metadata } = entry.object;
    const readings = this.#parts.map((part) => part.read(entry));
    this.#known.set(keyOf(metadata), { uid: metadata.uid, readings, isRunning: true });
  }

  /** Ends a reconcile. Until then nobody knows which values the client of the user writes. */
  end({ metadata }: KubernetesObject): void {
    const known = this.#knownOf(metadata);
    if (known !== undefined) known.isRunning = false;
  }

  /** Takes note of an own write of a primary, or of its status, with the answer if that is known. */
  note({ metadata }: KubernetesObject, { part, fieldManager, answer }: OwnWrite): void {
    const known = this.#knownOf(metadata);
    // A patch of the reconciler's status may have the conditions in it.
    const isWriter = (each: OwnPart) => !this.#serverSideApply || each.fieldManager === fieldManager;
    const index = this.#parts.findIndex((each) => each.part === part && isWriter(each));
    // The answer may be that of another object.
    const isOf = answer === undefined || uidOf(answer) === metadata.uid;
    if (known !== undefined && index >= 0 && isOf) known.readings[index] = answer && this.#parts[index]!.read(answer);
  }

  /** Tells whether an own part is another one than the controller wrote, or than its last reconcile found. */
  isOverwritten(entry: DecodedResource): boolean {
    const { readings = [], isRunning = true } = this.#knownOf(entry.object.metadata) ?? {};
    return readings.some((known, at) => {
      const now = known && this.#parts[at]!.read(entry);
      return known?.fields !== now?.fields || (!isRunning && known?.values !== now?.values);
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

// Whoever overwrites a field that was applied takes it over. An own write that was given up, and lands late, takes nothing over: its values tell.
function appliedPart({ fieldManager, matcher }: Sender, place: Pick<Application, "target" | "part">): OwnPart {
  return { fieldManager, part: place.part, read: (entry) => matcher.digestsOf(place, entry) };
}

function conditionPart({ fieldManager }: Sender, types: ReadonlySet<string>): OwnPart {
  const read = ({ object }: DecodedResource) => {
    const { conditions = [] } = (object as WithConditions).status ?? {};
    return { fields: JSON.stringify(conditions.filter(({ type }) => types.has(type))), values: "" };
  };
  return { fieldManager, part: "status", read };
}
