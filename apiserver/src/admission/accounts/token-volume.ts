import { generateName } from "@gen-operator/schema";
import { objectsAt } from "../../builtin/read-path.js";
import type { JsonObject } from "../../json.js";

const PREFIX = "kube-api-access-";
const MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
/** What client libraries expect to renew within an hour lives seven seconds longer, so that those who do not are noticed. */
const EXPIRATION_SECONDS = 3607;

/** Mounts the token of the account of a Pod in each of its containers that has nothing at that path, in place. */
export function mountToken(spec: JsonObject): void {
  const holder: JsonObject = { spec };
  const volumes = objectsAt(holder, "spec.volumes");
  const existing = volumes.map(({ name }) => String(name)).find((name) => name.startsWith(PREFIX));
  const name = existing ?? generateName(PREFIX);
  const containers = [...objectsAt(holder, "spec.initContainers"), ...objectsAt(holder, "spec.containers")];
  const without = containers.filter((container) =>
    objectsAt(container, "volumeMounts").every(({ mountPath }) => mountPath !== MOUNT_PATH),
  );
  for (const container of without) {
    const mounts = objectsAt(container, "volumeMounts");
    container["volumeMounts"] = [...mounts, { name, readOnly: true, mountPath: MOUNT_PATH }];
  }
  if (existing === undefined && without.length > 0) spec["volumes"] = [...volumes, { name, projected: projected() }];
}

function projected(): JsonObject {
  return {
    sources: [
      { serviceAccountToken: { expirationSeconds: EXPIRATION_SECONDS, path: "token" } },
      { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
      {
        downwardAPI: {
          items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
        },
      },
    ],
    defaultMode: 0o644,
  };
}
