import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import type { JsonObject } from "../json.js";
import { metadataOf, now } from "../object/object-meta.js";
import { packageFile } from "../package-file.js";
import type { Registry } from "../registry/registry.js";

// Recorded from a real server: the roles that users and clients meet, with their bindings.
const ROLES_FILE = packageFile("data/kubernetes-1.36-roles.json");
const GROUP = "rbac.authorization.k8s.io";
const KINDS = { clusterroles: "ClusterRole", clusterrolebindings: "ClusterRoleBinding" } as const;

/** Creates the roles and bindings that every cluster has, unless they are there. They are put where they belong as they were recorded. */
export function createFirstRoles(registry: Registry): void {
  const recorded = JSON.parse(readFileSync(ROLES_FILE, "utf8")) as Record<keyof typeof KINDS, JsonObject[]>;
  for (const plural of ["clusterroles", "clusterrolebindings"] as const) {
    const resource = registry.find({ group: GROUP, version: "v1", plural });
    for (const object of recorded[plural]) {
      const { name, ...rest } = metadataOf(object);
      if (resource?.store.get(String(name)) !== undefined) continue;
      const metadata = { name: String(name), uid: randomUUID(), creationTimestamp: now(), ...rest };
      const head = { kind: KINDS[plural], apiVersion: `${GROUP}/v1` };
      resource?.store.put(metadata.name, { ...head, ...object, metadata });
    }
  }
}
