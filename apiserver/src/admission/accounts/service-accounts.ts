// Admission plugin ServiceAccount: assigns a ServiceAccount to each Pod and mounts its token into the containers.
// https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#serviceaccount
import { generateName } from "@gen-operator/schema";
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { elapsedMs, sleep } from "../../clock.js";
import { forbidden } from "../../errors/status-error.js";
import { type JsonObject, arrayAt, isObject, objectAt, stringAt } from "../../json.js";
import { keyOf, metadataOf } from "../../object/object-meta.js";
import { type AdmissionPlugin, type AdmittedWrite, refOfWrite } from "../admission.js";
import { mirrorPodProblem, secretProblem } from "./secret-references.js";

const ACCOUNTS = { group: "", version: "v1", plural: "serviceaccounts" };
const DEFAULT_ACCOUNT = "default";
/** A controller creates the ServiceAccount `default` soon after its namespace. kube-apiserver waits as long for it, but polls less often. */
const PATIENCE_MS = 1_500;
const PAUSE_MS = 10;

export const serviceAccount: AdmissionPlugin = {
  resources: ["pods"],
  mutate: setServiceAccount,
  validate: checkServiceAccount,
};

/**
 * Sets the ServiceAccount of a new Pod and the fields derived from it, in place, and validates the result at once, as kube-apiserver does. Returns a
 * promise if it waits for the ServiceAccount `default`.
 */
function setServiceAccount(write: AdmittedWrite): Promise<void> | undefined {
  const { object } = write;
  if (object === undefined || !isOfPodOrDebugged(write) || write.operation !== "CREATE") return undefined;
  const spec = objectAt(object, "spec");
  if (spec === undefined) return undefined;
  if (isMirrorPod(object)) return void checkServiceAccount(write);
  if (nameOfAccount(object) === "") spec["serviceAccountName"] = spec["serviceAccount"] = DEFAULT_ACCOUNT;
  const account = accountOf(write, object);
  const give = (existing: JsonObject) => {
    completeSpec(spec, existing);
    checkServiceAccount(write);
  };
  if (account !== undefined) return void give(account);
  if (nameOfAccount(object) !== DEFAULT_ACCOUNT) throw missing(write, object);
  return waitForDefault(write, object).then(give);
}

/** Throws 403 if the ServiceAccount of a Pod does not exist or does not allow a Secret that the Pod references. */
function checkServiceAccount(write: AdmittedWrite): void {
  const { object, operation, subresource } = write;
  if (object === undefined || !isOfPodOrDebugged(write)) return;
  const isDebugged = operation === "UPDATE" && subresource === "ephemeralcontainers";
  if (operation !== "CREATE" && !isDebugged) return;
  if (isMirrorPod(object) && !isDebugged) {
    const problem = mirrorPodProblem(object);
    if (problem !== undefined) throw refusal(write, problem);
    return;
  }
  const name = stringAt(metadataOf(object), "name") ?? "";
  if (nameOfAccount(object) === "")
    throw refusal(write, `no service account specified for pod ${write.context.namespace}/${name}`);
  const account = accountOf(write, object);
  if (account === undefined) throw missing(write, object);
  const problem = secretProblem(account, object, isDebugged);
  if (problem !== undefined) throw refusal(write, problem);
}

function isOfPodOrDebugged({ subresource }: AdmittedWrite): boolean {
  return subresource === "" || subresource === "ephemeralcontainers";
}

function isMirrorPod(pod: JsonObject): boolean {
  return objectAt(metadataOf(pod), "annotations")?.["kubernetes.io/config.mirror"] !== undefined;
}

function nameOfAccount(pod: JsonObject): string {
  return textAt(pod, "spec.serviceAccountName");
}

function accountOf({ context }: AdmittedWrite, pod: JsonObject): JsonObject | undefined {
  const key = keyOf({ namespace: context.namespace, name: nameOfAccount(pod) });
  return context.registry.find(ACCOUNTS)?.store.get(key)?.object;
}

async function waitForDefault(write: AdmittedWrite, pod: JsonObject): Promise<JsonObject> {
  for (const deadline = elapsedMs() + PATIENCE_MS; elapsedMs() < deadline; await sleep(PAUSE_MS)) {
    const account = accountOf(write, pod);
    if (account !== undefined) return account;
  }
  throw missing(write, pod);
}

function completeSpec(spec: JsonObject, account: JsonObject): void {
  const mounts = spec["automountServiceAccountToken"] ?? account["automountServiceAccountToken"];
  if (mounts !== false) mountToken(spec);
  const secrets = arrayAt(account, "imagePullSecrets") ?? [];
  if (secrets.length > 0 && (arrayAt(spec, "imagePullSecrets") ?? []).length === 0)
    spec["imagePullSecrets"] = secrets.filter(isObject).map(({ name = "" }) => ({ name }));
}

function missing(write: AdmittedWrite, pod: JsonObject): Error {
  const name = nameOfAccount(pod);
  const { namespace } = write.context;
  return refusal(write, `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`);
}

function refusal(write: AdmittedWrite, detail: string): Error {
  return forbidden(refOfWrite(write), detail);
}

const PREFIX = "kube-api-access-";
const MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
/**
 * The expiration that kube-apiserver sets. Clients are expected to refresh a token every hour; the extra seven seconds distinguish injected tokens
 * from requested ones.
 */
const EXPIRATION_SECONDS = 3607;

/** Mounts the token of the ServiceAccount into each container that has no volume mount at that path, in place. */
function mountToken(spec: JsonObject): void {
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
