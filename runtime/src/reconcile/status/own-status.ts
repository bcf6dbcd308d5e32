import { keyOf, type KubernetesObject, type ObjectKey } from "../../base/kubernetes-object.js";
import { ownedBy, uidOf, type DecodedResource } from "../../base/decoded-resource.js";
import { ownTypes, type WithConditions } from "./status-conditions.js";

/** Reads what a field manager wrote of a status, as a text that is another one after somebody else overwrites a part of it. */
type OwnPart = (entry: DecodedResource, fieldManager: string) => string | undefined;

interface Known {
  readonly uid: string | undefined;
  /** By the index of the field manager; undefined where nothing is known of it. */
  readonly parts: (string | undefined)[];
}

/** What a controller itself wrote into the statuses of its primaries: tells when somebody else overwrites it. */
export class OwnStatus {
  readonly #fieldManagers: readonly string[];
  readonly #partOf: OwnPart;
  readonly #known = new Map<ObjectKey, Known>();

  constructor(fieldManagers: readonly string[], partOf: OwnPart = appliedPart) {
    this.#fieldManagers = fieldManagers;
    this.#partOf = partOf;
  }

  /** Takes the state with which a reconcile begins: what is overwritten in it is for this reconcile to put right. */
  begin(entry: DecodedResource): void {
    const { metadata } = entry.object;
    const parts = this.#fieldManagers.map((name) => this.#partOf(entry, name));
    this.#known.set(keyOf(metadata), { uid: metadata.uid, parts });
  }

  /** Takes note of an own write of the status of a primary, with the answer if that is known. */
  note({ metadata }: KubernetesObject, fieldManager: string, answer?: DecodedResource): void {
    const known = this.#knownOf(metadata);
    const index = this.#fieldManagers.indexOf(fieldManager);
    // The answer may be that of another object.
    const isOf = answer === undefined || uidOf(answer) === metadata.uid;
    if (known !== undefined && index >= 0 && isOf) known.parts[index] = answer && this.#partOf(answer, fieldManager);
  }

  /** Tells whether the own part of a status is another one than the controller wrote, or than its last reconcile found. */
  isOverwritten(entry: DecodedResource): boolean {
    const { parts = [] } = this.#knownOf(entry.object.metadata) ?? {};
    return parts.some((part, at) => part !== undefined && part !== this.#partOf(entry, this.#fieldManagers[at]!));
  }

  release(key: ObjectKey): void {
    this.#known.delete(key);
  }

  #knownOf(metadata: KubernetesObject["metadata"]): Known | undefined {
    const known = this.#known.get(keyOf(metadata));
    return known?.uid === metadata.uid ? known : undefined;
  }
}

// Whoever overwrites a field that was applied takes it over.
function appliedPart(entry: DecodedResource, fieldManager: string): string | undefined {
  return ownedBy(entry, fieldManager, "status")?.fieldsV1;
}

/** Creates the own statuses of a controller. Without server-side apply only conditions are told from what others write. */
export function createOwnStatus({
  fieldManager,
  conditionsManager,
  serverSideApply,
  names,
}: {
  readonly fieldManager: string;
  readonly conditionsManager: string | undefined;
  readonly serverSideApply: boolean;
  /** Those of the dependents. */
  readonly names: readonly string[];
}): OwnStatus {
  const ofConditions = conditionsManager === undefined ? [] : [conditionsManager];
  if (serverSideApply) return new OwnStatus([fieldManager, ...ofConditions]);
  const types = ownTypes(names);
  return new OwnStatus(ofConditions, ({ object }: { object: WithConditions }) =>
    JSON.stringify(object.status?.conditions?.filter(({ type }) => types.has(type))),
  );
}
