import type { JsonPatchOperation, KubernetesObject } from "../base/kubernetes-object.js";
import { CONTROLLER_LABEL, LINK_ANNOTATIONS } from "../base/primary-link.js";
import { uidTest } from "./send/plan.js";

/** Returns the operations that take owner references of an owner, and the label and annotations of a dependent, off an object. */
export function untyingOperations({ metadata }: KubernetesObject, owner: string | undefined): JsonPatchOperation[] {
  const removed = (path: string, test: JsonPatchOperation): JsonPatchOperation[] => [test, { op: "remove", path }];
  const removedFrom = (member: "annotations" | "labels", name: string) => {
    const value = metadata[member]?.[name];
    const path = `/metadata/${member}/${name.replaceAll("/", "~1")}`;
    return value === undefined ? [] : removed(path, { op: "test", path, value });
  };
  const annotations = LINK_ANNOTATIONS.flatMap((name) => removedFrom("annotations", name));
  // From the last to the first, so that the places of those before stay right.
  const owners = [...(metadata.ownerReferences ?? []).entries()].reverse().flatMap(([index, { uid }]) => {
    const path = `/metadata/ownerReferences/${index}`;
    return uid === owner ? removed(path, { op: "test", path: `${path}/uid`, value: uid }) : [];
  });
  const operations = [...annotations, ...removedFrom("labels", CONTROLLER_LABEL), ...owners];
  return operations.length === 0 ? [] : [uidTest(metadata.uid), ...operations];
}
