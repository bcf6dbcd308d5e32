import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { objectsAt } from "../builtin/read-path.js";
import type { JsonObject } from "../json.js";
import { keyOf } from "../object/object-key.js";
import { metadataOf, now } from "../object/object-meta.js";
import { packageFile } from "../package-file.js";
import type { Registry } from "../registry/registry.js";

// Recorded from a real server: all roles and bindings that it has from its start.
const ROLES_FILE = packageFile("data/kubernetes-1.36-roles.json");
const GROUP = "rbac.authorization.k8s.io";
const KINDS = {
  clusterroles: "ClusterRole",
  clusterrolebindings: "ClusterRoleBinding",
  roles: "Role",
  rolebindings: "RoleBinding",
} as const;
type Plural = keyof typeof KINDS;

/** Creates the roles and bindings that every cluster has, unless they are there. They are put where they belong as they were recorded. */
export function createFirstRoles(registry: Registry): void {
  const recorded = JSON.parse(readFileSync(ROLES_FILE, "utf8")) as Record<Plural, JsonObject[]>;
  const time = now();
  for (const plural of Object.keys(KINDS) as Plural[]) {
    const resource = registry.find({ group: GROUP, version: "v1", plural });
    for (const object of recorded[plural]) {
      const { name, namespace, ...rest } = metadataOf(object) as { name: string; namespace?: string };
      const key = keyOf({ namespace, name });
      if (resource?.store.get(key) !== undefined) continue;
      const place = namespace === undefined ? { name } : { name, namespace };
      const managedFields = objectsAt(rest, "managedFields").map((entry) => ({ ...entry, time }));
      const metadata = { ...place, uid: randomUUID(), creationTimestamp: time, ...rest, managedFields };
      resource?.store.put(key, { kind: KINDS[plural], apiVersion: `${GROUP}/v1`, ...object, metadata });
    }
  }
}
