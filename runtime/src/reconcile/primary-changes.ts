// Which changes of a primary concern its controller, although they make no new generation: of metadata that its functions read (inputs), and of
// fields that it wrote itself (OwnFields). ReadObserver finds metadata that functions read and that is no input.
import { hash } from "node:crypto";
import { channel } from "node:diagnostics_channel";
import type { Sender } from "../apply/sender.js";
import type { OwnWrite, WritePart, WriteTarget } from "../apply/write.js";
import {
  type DecodedResource,
  type KubernetesObject,
  type ObjectKey,
  type ObjectMeta,
  type WithConditions,
  keyOf,
  uidOf,
} from "../base/kubernetes-object.js";
import type { Logger } from "../base/logger.js";
import type { PrimaryInput } from "../queue/schedule-settings.js";
import type { ControllerDefinition } from "./controller-definition.js";
import type { ConditionTypes } from "./status-conditions.js";

/** Returns a digest of the inputs of a controller. */
export type InputReader = (entry: DecodedResource) => string;

type Member = "labels" | "annotations";
type KeySet = Pick<ReadonlySet<string>, "has">;

// Annotations for bookkeeping of clients and of the runtime. They are inputs only if their keys are listed.
const BOOKKEEPING =
  /^(?:kubectl\.kubernetes\.io\/last-applied-configuration$|control-plane\.alpha\.kubernetes\.io\/leader$|gen-operator\.dev\/)/;
const KEYED = /^metadata\.(labels|annotations)(?:\['([^']+)'\])?$/;

/** Publishes reads of a label or an annotation of the primary that is no input: the `controller`, the `input`, and the key of the `primary`. */
const unlistedReadChannel = channel("gen-operator.unlisted-read");

/** Validates an input, for users without a type checker. */
export function isInput(input: unknown): input is PrimaryInput {
  return typeof input === "string" && (input === "metadata.ownerReferences" || keyedInputOf(input) !== undefined);
}

/** Returns the member that an input names, and the key if it names one; undefined for `metadata.ownerReferences`. */
function keyedInputOf(input: string): { readonly member: Member; readonly key: string | undefined } | undefined {
  const [, member, key] = KEYED.exec(input) ?? [];
  return member === undefined ? undefined : { member: member as Member, key };
}

/** Creates the reader of inputs; undefined if there are none. `appliedTo` returns the keys that the controller itself applied to a primary. */
export function inputReaderOf(
  inputs: readonly PrimaryInput[] = [],
  appliedTo: (entry: DecodedResource) => { readonly [member in Member]: KeySet },
): InputReader | undefined {
  if (inputs.length === 0) return undefined;
  const parts = [...new Set(inputs)].sort().map(partOf);
  return (entry) => {
    const applied = appliedTo(entry);
    const text = JSON.stringify(parts.map((read) => read(entry.object.metadata, applied)));
    // One digest is kept for each primary.
    return text.length <= 32 ? text : hash("sha1", text, "base64");
  };
}

type PartReader = (metadata: ObjectMeta, applied: { readonly [member in Member]: KeySet }) => unknown;

// Values that the controller itself applied are no input. Another client that changes such a value becomes the owner of the key.
function partOf(input: PrimaryInput): PartReader {
  const keyed = keyedInputOf(input);
  if (keyed === undefined) return ({ ownerReferences }) => ownerReferences;
  const { member, key } = keyed;
  if (key !== undefined) return (metadata, applied) => (applied[member].has(key) ? undefined : metadata[member]?.[key]);
  return (metadata, applied) =>
    Object.entries(metadata[member] ?? {})
      .filter(([key]) => !BOOKKEEPING.test(key) && !applied[member].has(key))
      .sort(([one], [other]) => (one < other ? -1 : 1));
}

/** Digests of the field paths and of the values of a part; kept for each primary. */
interface Reading {
  readonly fields: string;
  readonly values: string;
}

/** The part of a primary that one field manager writes. */
interface OwnPart {
  readonly fieldManager: string;
  readonly part: WritePart;
  /** Returns undefined if the field manager owns nothing. */
  read(entry: DecodedResource): Reading | undefined;
}

interface KnownFields {
  readonly uid: string | undefined;
  /** Each part after the last own write, or at the start of the last reconcile; undefined if it is empty or unknown. */
  readonly readings: (Reading | undefined)[];
  /** Whether a reconcile is in progress. */
  isRunning: boolean;
}

interface Writers {
  readonly sender: Sender;
  readonly conditionsSender: Sender | undefined;
  readonly serverSideApply: boolean;
  readonly conditionTypes: ConditionTypes;
}

/** Detects that other clients overwrite what the controller wrote to its primaries. */
export class OwnFields {
  readonly #parts: readonly OwnPart[];
  readonly #serverSideApply: boolean;
  readonly #known = new Map<ObjectKey, KnownFields>();

  constructor(target: WriteTarget, { sender, conditionsSender, serverSideApply, conditionTypes }: Writers) {
    this.#serverSideApply = serverSideApply;
    const applied = (by: Sender, part: WritePart) => appliedPart(by, target, part);
    const conditionsOf = (by: Sender) =>
      // Without server-side apply, only the types of conditions show who wrote them.
      serverSideApply ? applied(by, "status") : conditionPart(by, conditionTypes.all);
    this.#parts = [
      ...(serverSideApply ? [applied(sender, "status"), applied(sender, "object")] : []),
      ...(conditionsSender === undefined ? [] : [conditionsOf(conditionsSender)]),
    ];
  }

  /** Records the state at the start of a reconcile, which reverts what is overwritten in it. */
  begin(entry: DecodedResource): void {
    const { metadata } = entry.object;
    const readings = this.#parts.map((part) => part.read(entry));
    this.#known.set(keyOf(metadata), { uid: metadata.uid, readings, isRunning: true });
  }

  /** Called at the end of a reconcile. During it, values may change by writes of the user's function, so only field paths are compared. */
  end({ metadata }: KubernetesObject): void {
    const known = this.#knownOf(metadata);
    if (known !== undefined) known.isRunning = false;
  }

  /** Records an own write to a primary or its status, with the response if there was one. */
  note({ metadata }: KubernetesObject, { part, fieldManager, answer }: OwnWrite): void {
    const known = this.#knownOf(metadata);
    // A patch of the status may contain the conditions.
    const isWriter = (each: OwnPart) => !this.#serverSideApply || each.fieldManager === fieldManager;
    const index = this.#parts.findIndex((each) => each.part === part && isWriter(each));
    // The primary may have been re-created meanwhile.
    const isOf = answer === undefined || uidOf(answer) === metadata.uid;
    if (known !== undefined && index >= 0 && isOf) known.readings[index] = answer && this.#parts[index]!.read(answer);
  }

  /** Reports whether a part differs from what the controller wrote, or from what its last reconcile found. */
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

  #knownOf(metadata: ObjectMeta): KnownFields | undefined {
    const known = this.#known.get(keyOf(metadata));
    return known?.uid === metadata.uid ? known : undefined;
  }
}

// Another client that overwrites an applied field becomes its owner. An aborted own write that takes effect later changes values only.
function appliedPart({ fieldManager, matcher }: Sender, target: WriteTarget, part: WritePart): OwnPart {
  return { fieldManager, part, read: (entry) => matcher.digestsOf(target, part, entry) };
}

function conditionPart({ fieldManager }: Sender, types: ReadonlySet<string>): OwnPart {
  const read = ({ object }: DecodedResource) => {
    const { conditions = [] } = (object as WithConditions).status ?? {};
    return { fields: JSON.stringify(conditions.filter(({ type }) => types.has(type))), values: "" };
  };
  return { fieldManager, part: "status", read };
}

type Note = (input: string) => void;

/** Finds reads of metadata that is no input of the controller, while a tool subscribes to them. Without a subscriber it costs nothing. */
export class ReadObserver {
  readonly #definition: ControllerDefinition;
  readonly #known = new Set<string>();
  /** The observed primaries, by the objects that functions get in their place. */
  readonly #originals = new WeakMap<KubernetesObject, KubernetesObject>();

  constructor(definition: ControllerDefinition) {
    this.#definition = definition;
  }

  /** Returns the object that functions get for a primary: the primary itself, unless a tool subscribes. */
  observe(
    primary: KubernetesObject,
    { key, logger }: { readonly key: string; readonly logger: Logger },
  ): KubernetesObject {
    const { name: controller, generationAware, defaultFilters } = this.#definition;
    if (!unlistedReadChannel.hasSubscribers || generationAware === false || defaultFilters === false) return primary;
    const observed = this.#observed(primary, (input) => {
      if (this.#known.has(input)) return;
      this.#known.add(input);
      const message =
        `a function reads ${input} of the primary, which is no input of the controller, so a change of it causes no reconcile; ` +
        "run gen-operator generate, or add it to inputs";
      logger.warn({ input }, message);
      unlistedReadChannel.publish({ controller, input, primary: key });
    });
    this.#originals.set(observed, primary);
    return observed;
  }

  /** Returns the primary for an object that functions got. */
  originalOf(given: KubernetesObject): KubernetesObject {
    return this.#originals.get(given) ?? given;
  }

  // Getters instead of proxies, so that structuredClone and spreads work as in production.
  #observed(primary: KubernetesObject, note: Note): KubernetesObject {
    const metadata = { ...primary.metadata };
    for (const member of ["labels", "annotations"] as const) {
      const values = this.#observedMember(member, primary.metadata[member], note);
      if (values !== undefined) Object.defineProperty(metadata, member, { enumerable: true, get: values });
    }
    return Object.freeze({ ...primary, metadata: Object.freeze(metadata) });
  }

  /** Returns the getter of a member; undefined if the whole member is an input. */
  #observedMember(member: Member, values: { readonly [key: string]: string } | undefined, note: Note) {
    const { inputs = [] } = this.#definition;
    const whole = `metadata.${member}` as const;
    if (inputs.includes(whole)) return undefined;
    const isListed = (key: string) => inputs.includes(`${whole}['${key}']`);
    if (!inputs.some((input) => input.startsWith(`${whole}[`)))
      return () => {
        note(whole);
        return values;
      };
    if (values === undefined) return undefined;
    const observed = {};
    for (const [key, value] of Object.entries(values)) {
      const get = () => {
        if (!isListed(key)) note(`${whole}['${key}']`);
        return value;
      };
      Object.defineProperty(observed, key, { enumerable: true, get });
    }
    return () => Object.freeze(observed);
  }
}
