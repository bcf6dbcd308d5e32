import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { isKubernetes, isReadOnly, type ControllerModel } from "../model/project-model.js";
import { isImmutableKind } from "../model/rules/dependents/immutable-kind.js";
import { dependentNamesOf } from "../output/controller-names.js";
import { kebabCase } from "../output/naming.js";
import { collectInto, type Change } from "./change.js";

/** What an API server refuses to change in an object that exists, by group and kind. */
const IMMUTABLE: ReadonlyMap<string, string> = new Map([
  ["/PersistentVolumeClaim", "spec, other than resources.requests and volumeAttributesClassName"],
  ["/Pod", "spec, other than images, tolerations that are added and activeDeadlineSeconds"],
  ["/Secret", "type"],
  ["/Service", "spec.clusterIP and spec.clusterIPs"],
  ["apps/DaemonSet", "spec.selector"],
  ["apps/Deployment", "spec.selector"],
  ["apps/ReplicaSet", "spec.selector"],
  [
    "apps/StatefulSet",
    "spec, other than replicas, ordinals, template, updateStrategy, revisionHistoryLimit, persistentVolumeClaimRetentionPolicy and minReadySeconds",
  ],
  ["batch/Job", "spec.selector, spec.template and spec.completionMode"],
  ["discovery.k8s.io/EndpointSlice", "addressType"],
  ["networking.k8s.io/IngressClass", "spec.controller"],
  ["node.k8s.io/RuntimeClass", "handler"],
  ["rbac.authorization.k8s.io/ClusterRoleBinding", "roleRef"],
  ["rbac.authorization.k8s.io/RoleBinding", "roleRef"],
  ["scheduling.k8s.io/PriorityClass", "value and preemptionPolicy"],
  ["storage.k8s.io/StorageClass", "provisioner, parameters, reclaimPolicy and volumeBindingMode"],
]);

/** Two states of a project. */
export interface TwoStates {
  readonly before: string;
  readonly now: string;
  readonly controllers: readonly ControllerModel[];
}

/**
 * Names the dependents whose stub has another text, where the kind has fields that cannot be changed: what `desired` returns is known
 * only when it runs.
 */
export async function compareStubs({ before, now, controllers }: TwoStates): Promise<Change[]> {
  const changes: Change[] = [];
  for (const controller of controllers) {
    const add = collectInto(changes, `controller ${controller.name}`);
    for (const dependent of controller.dependents) {
      if (!isKubernetes(dependent) || isReadOnly(dependent)) continue;
      if (dependent.mode === "createOnly" || dependent.mode === "once") continue;
      const { group, kind } = dependent.resource;
      const fields = IMMUTABLE.get(`${group}/${kind}`);
      if (fields === undefined) continue;
      const path = `src/${kebabCase(controller.name)}/dependents/${dependentNamesOf(dependent).file}.ts`;
      const [former, current] = await Promise.all([before, now].map((root) => textOf(join(root, path))));
      if (former === undefined || current === undefined || former === current) continue;
      const isRecreated = dependent.onImmutable === "recreate";
      const fate = isRecreated
        ? `a ${kind} that exists is deleted and created again if the change is one of ${fields}`
        : `of a ${kind} that exists, the API server refuses a change of ${fields}: give the object another name, or set onImmutable: recreate, to replace it`;
      // Nearly every change of these is refused.
      const isBreaking = !isRecreated && isImmutableKind(dependent.resource);
      add(isBreaking ? "breaking" : "compatible", dependent.name, `${path} differs; ${fate}`);
    }
  }
  return changes;
}

async function textOf(path: string): Promise<string | undefined> {
  return readFile(path, "utf8").catch(() => undefined);
}
