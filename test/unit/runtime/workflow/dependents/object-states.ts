// States of external dependents in objects that are in memory.
import { keyOf, type KubernetesObject, type ObjectKey } from "#runtime/base/kubernetes-object.js";
import { ObjectStateStore } from "#runtime/workflow/dependents/object-state.js";
import type { ObjectState } from "#runtime/workflow/definition/workflow-definition.js";
import { page } from "../graphs.js";

/** A primary of a name. */
export const primaryNamed = (name: string, uid = "u1"): KubernetesObject => ({
  apiVersion: "example.com/v1",
  kind: "Page",
  metadata: { name, namespace: "home", uid },
});
/** The primary of most tests. */
export const primary = primaryNamed("one");

type StoreOptions = ConstructorParameters<typeof ObjectStateStore>[0];

interface StateSettings extends Partial<Pick<StoreOptions, "label" | "primary" | "movedFrom">> {
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
  const options = {
    ...{ dependent, form, state: kept, primary: page, label: "shop" },
    ...more,
    warn: (text: string) => void warnings.push(text),
    view: { get: (key: ObjectKey) => (objects.has(key) ? { object: objects.get(key)! } : undefined) },
    ownedBy: ({ metadata: { uid } }: KubernetesObject) =>
      [...objects.values()].filter(({ metadata }) => metadata.ownerReferences?.some((owner) => owner.uid === uid)),
    apply: async (object: Pick<KubernetesObject, "metadata">) => {
      await Promise.resolve();
      objects.set(keyOf(object.metadata), object as KubernetesObject);
    },
    delete: async ({ metadata }: KubernetesObject) => objects.delete(keyOf(metadata)),
  };
  return { state: new ObjectStateStore(options), objects, options, warnings };
}
