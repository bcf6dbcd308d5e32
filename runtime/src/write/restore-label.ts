// What is only created, or is being deleted, must not be written as desired; but without the label no watch shows it.
import { type KubernetesObject, keyOf, type ObjectMeta } from "../base/kubernetes-object.js";
import { CONTROLLER_LABEL, lacksLabel, OBJECT_KEY } from "../base/primary-link.js";
import type { DecodedResource } from "../decode/decode-resource.js";
import type { WriteTarget } from "./apply-matcher.js";
import type { RemoveOptions } from "./remove.js";
import { writeThrough } from "./write-through.js";

/** Puts the label of a controller, and nothing else of what is desired, on an object of that controller; returns its new state. */
export async function restoreLabel(
  { definition, cache }: WriteTarget,
  { live, desired }: { readonly live: DecodedResource<KubernetesObject>; readonly desired: Partial<ObjectMeta> },
  { client, fieldManager, fieldManagers }: RemoveOptions,
): Promise<DecodedResource> {
  const ref = live.object.metadata;
  if (!lacksLabel(ref, desired)) return live;
  const labels = { [CONTROLLER_LABEL]: desired.labels?.[CONTROLLER_LABEL] };
  const annotations = { [OBJECT_KEY]: desired.annotations?.[OBJECT_KEY] };
  const body = { metadata: { uid: ref.uid, labels, annotations } };
  const { wasCreated: _wasCreated, ...entry } = await writeThrough(cache, {
    key: keyOf(ref),
    isFiltered: true,
    send: () =>
      client.write({ definition }, { verb: "mergePatch", ref, body, fieldManager, fieldManagers, isRepeatable: true }),
    before: live,
    // Somebody else may have changed it since it was read.
    isOwn: () => false,
  });
  return entry;
}
