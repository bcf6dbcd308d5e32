// Secrets that a Pod references, checked against the Secrets that its ServiceAccount allows.
import { at, objectsAt, textAt } from "../../builtin/read-path.js";
import { type JsonObject, objectAt, stringAt } from "../../json.js";
import { metadataOf } from "../../object/object-meta.js";

const ENFORCES = "kubernetes.io/enforce-mountable-secrets";
/** Strings that Go's strconv.ParseBool parses as true. */
const TRUE = ["1", "t", "T", "true", "TRUE", "True"];

/** Returns the reason to reject a mirror Pod: it must not reference service accounts or Secrets. Undefined if it is valid. */
export function mirrorPodProblem(pod: JsonObject): string | undefined {
  if (textAt(pod, "spec.serviceAccountName") !== "") return "a mirror pod may not reference service accounts";
  const volumes = objectsAt(pod, "spec.volumes");
  const containers = ["initContainers", "containers", "ephemeralContainers"].flatMap((field) =>
    referencesOf(pod, field, ""),
  );
  const isNamed = objectsAt(pod, "spec.imagePullSecrets").length > 0 || containers.length > 0;
  if (isNamed || volumes.some(refersToSecret)) return "a mirror pod may not reference secrets";
  const takesToken = volumes.some((volume) =>
    objectsAt(volume, "projected.sources").some(({ serviceAccountToken }) => serviceAccountToken !== undefined),
  );
  return takesToken ? "a mirror pod may not use ServiceAccountToken volume projections" : undefined;
}

/**
 * Returns the reason to reject a Pod that references a Secret missing from the `secrets` or `imagePullSecrets` of its ServiceAccount, if the account
 * has the annotation kubernetes.io/enforce-mountable-secrets. `isDebugged` limits the check to ephemeral containers.
 */
export function secretProblem(account: JsonObject, pod: JsonObject, isDebugged: boolean): string | undefined {
  const enforces = objectAt(metadataOf(account), "annotations")?.[ENFORCES];
  if (!TRUE.includes(String(enforces))) return undefined;
  const name = stringAt(metadataOf(account), "name") ?? "";
  const namesAt = (field: string): string[] => objectsAt(account, field).map((secret) => textAt(secret, "name"));
  const [mountable, pulled] = [namesAt("secrets"), namesAt("imagePullSecrets")];
  const refused = (what: string, secret: string): string =>
    `${what}secret.secretName="${secret}" is not allowed because service account ${name} does not reference that secret`;
  const ofContainers = isDebugged
    ? referencesOf(pod, "ephemeralContainers", "ephemeral ")
    : [...referencesOf(pod, "initContainers", "init "), ...referencesOf(pod, "containers", "")];
  const ofVolumes = objectsAt(pod, "spec.volumes")
    .filter(({ secret }) => secret !== undefined)
    .map((volume) => ({ what: "volume with ", secret: textAt(volume, "secret.secretName") }));
  const references = isDebugged ? ofContainers : [...ofVolumes, ...ofContainers];
  const problem = references.find(({ secret }) => !mountable.includes(secret));
  if (problem !== undefined) return refused(problem.what, problem.secret);
  const images = isDebugged ? [] : objectsAt(pod, "spec.imagePullSecrets").map((secret) => textAt(secret, "name"));
  const index = images.findIndex((secret) => !pulled.includes(secret));
  if (index < 0) return undefined;
  return (
    `imagePullSecrets[${index}].name="${images[index]}" is not allowed because service account ${name} ` +
    "does not reference that imagePullSecret"
  );
}

interface SecretReference {
  what: string;
  secret: string;
}

function referencesOf(pod: JsonObject, field: string, word: string): SecretReference[] {
  return objectsAt(pod, `spec.${field}`).flatMap((container) => {
    const who = `${word}container ${textAt(container, "name")} with `;
    const variables = objectsAt(container, "env")
      .filter((variable) => at(variable, "valueFrom.secretKeyRef") !== undefined)
      .map((variable) => ({
        what: `${who}envVar ${textAt(variable, "name")} referencing `,
        secret: textAt(variable, "valueFrom.secretKeyRef.name"),
      }));
    const sources = objectsAt(container, "envFrom")
      .filter(({ secretRef }) => secretRef !== undefined)
      .map((source) => ({ what: `${who}envFrom referencing `, secret: textAt(source, "secretRef.name") }));
    return [...variables, ...sources];
  });
}

const SECRET_PATHS = ["secret", "azureFile", "csi.nodePublishSecretRef"];
const WITH_SECRET_REF = ["cephfs", "cinder", "flexVolume", "rbd", "scaleIO", "iscsi", "storageos"];

function refersToSecret(volume: JsonObject): boolean {
  return (
    [...SECRET_PATHS, ...WITH_SECRET_REF.map((source) => `${source}.secretRef`)].some(
      (path) => at(volume, path) !== undefined,
    ) || objectsAt(volume, "projected.sources").some(({ secret }) => secret !== undefined)
  );
}
