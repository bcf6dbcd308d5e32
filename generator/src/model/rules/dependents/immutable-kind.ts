import { quote, type Diagnostic } from "../../../diagnostic.js";
import { ruleOfController, subjectOf } from "../../build/resolved-project.js";
import type { ResourceModel } from "../../project-model.js";

/** Kinds of which nearly every change of `desired` is one of an immutable field. Of a Pod the image can be changed. */
const IMMUTABLE_KINDS: ReadonlyMap<string, string> = new Map([["batch/Job", "template"]]);

/** Kinds whose deletion loses data, or all objects in them. */
const DATA_KINDS: ReadonlySet<string> = new Set([
  "/Namespace",
  "/PersistentVolume",
  "/PersistentVolumeClaim",
  "apiextensions.k8s.io/CustomResourceDefinition",
  "snapshot.storage.k8s.io/VolumeSnapshot",
  "snapshot.storage.k8s.io/VolumeSnapshotContent",
]);

type Kind = Pick<ResourceModel, "group" | "kind">;

/** Tells whether the API server refuses nearly every change of an object of a kind. */
export function isImmutableKind({ group, kind }: Kind): boolean {
  return IMMUTABLE_KINDS.has(`${group}/${kind}`);
}

/** Finds objects that cannot be changed, and those that must not be deleted to change them. */
export const checkImmutableKind = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent): Diagnostic[] => {
    const { name, spec, path, resource } = dependent;
    const { document } = controller.spec;
    if (resource === undefined || spec.external !== undefined) return [];
    const { group, kind } = resource;
    if (spec.onImmutable === "recreate" && DATA_KINDS.has(`${group}/${kind}`))
      return [
        {
          severity: "error",
          rule: "immutable-kind",
          message: `the deletion of a ${kind} loses data: dependent ${quote(name)} cannot be deleted to create it again`,
          ...document.keyAt([...path, "onImmutable"]),
          hint: "remove onImmutable",
        },
      ];
    const isChanged = (spec.mode ?? "managed") === "managed" && spec.operations?.update === undefined;
    const part = IMMUTABLE_KINDS.get(`${group}/${kind}`);
    if (part === undefined || !isChanged || spec.ref !== undefined || spec.onImmutable !== undefined) return [];
    return [
      {
        severity: "warning",
        rule: "immutable-kind",
        message: `dependent ${quote(name)} is a managed ${kind}, whose ${part} is immutable: when desired() changes it, the API server refuses the update of each ${kind} that exists`,
        about: subjectOf(controller, dependent),
        ...document.keyAt(path),
        hint: `set mode: once to run it once for each primary, onImmutable: recreate to delete it and create it again, or onImmutable: fail to report it`,
      },
    ];
  }),
);
