// States of external dependents in objects that are in memory.
import { keyOf, type KubernetesObject, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import { ApiError } from "#runtime/base/errors.js";
import { ProofKey } from "#runtime/base/proof-key.js";
import { ObjectStateStore } from "#runtime/dependents/object-state.js";
import { type ExternalStateStore, StateProofs } from "#runtime/dependents/external-state.js";
import type { KeptState, ObjectState } from "#runtime/workflow/workflow-definition.js";
import { page } from "../graphs.js";

/** A primary of a name. */
export const primaryNamed = (name: string, uid = "u1"): KubernetesObject => ({
  apiVersion: "example.com/v1",
  kind: "Page",
  metadata: { name, namespace: "home", uid },
});
/** The primary of most tests. */
export const primary = primaryNamed("one");

/** Returns the proofs of a dependent of the controller "shop", with a key that all of these share unless another one is given. */
export function proofsOf(
  dependents: readonly [string, ...string[]],
  { controllers = ["shop"], key = 1 }: { controllers?: readonly [string, ...string[]]; key?: number } = {},
): StateProofs {
  const proofKey = new ProofKey(Buffer.alloc(32, key));
  return new StateProofs({ key: () => proofKey, controllers, dependents });
}

/** Returns what a store keeps of a primary and proves. */
export function statesIn(store: Pick<ExternalStateStore, "read">, of: KubernetesObject): Map<string, KeptState> {
  const proven = [...store.read(of)].filter(([, { standing }]) => standing !== "unproven");
  return new Map(proven.map(([key, { state }]) => [key, state]));
}

type StoreOptions = ConstructorParameters<typeof ObjectStateStore>[0];

interface StateSettings extends Partial<
  Pick<StoreOptions, "label" | "formerLabels" | "primary" | "movedFrom" | "proofs">
> {
  isBulk?: boolean;
  isObject?: boolean;
  objects?: Map<ObjectKey, KubernetesObject>;
}

/** A store over objects in memory, which are there as soon as they are applied, and a turn later than that is asked for. */
export function createState(
  dependent = "accounts",
  kept: ObjectState = { kind: "configMap" },
  { isBulk = true, isObject = false, objects = new Map<ObjectKey, KubernetesObject>(), ...more }: StateSettings = {},
) {
  const warnings: string[] = [];
  const form = { isMap: isBulk, isObject };
  let uids = 0;
  const options = {
    ...{ dependent, form, state: kept, primary: page, label: "shop" },
    proofs: proofsOf([dependent, ...(more.movedFrom ?? [])]),
    ...more,
    warn: (text: string) => void warnings.push(text),
    view: { get: (key: ObjectKey) => (objects.has(key) ? { object: objects.get(key)! } : undefined) },
    ownedBy: ({ metadata: { uid } }: KubernetesObject) =>
      [...objects.values()].filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid)),
    read: async ({ name, namespace }: { name: string; namespace?: string }) =>
      objects.get(keyOf({ name, ...(namespace !== undefined && { namespace }) })),
    apply: async (object: Pick<KubernetesObject, "metadata">) => {
      await Promise.resolve();
      const key = keyOf(object.metadata);
      const known = objects.get(key);
      if (known?.metadata.uid !== object.metadata.uid) throw new ApiError(409, { reason: "Conflict" });
      const uid = known?.metadata.uid ?? `object-${dependent}-${++uids}`;
      objects.set(key, { ...object, metadata: { ...object.metadata, uid } } as KubernetesObject);
    },
    delete: async ({ metadata }: KubernetesObject) => objects.delete(keyOf(metadata)),
  };
  return { state: new ObjectStateStore(options), objects, options, warnings };
}
