// Admission plugin PersistentVolumeClaimResize: only bound claims whose StorageClass allows volume expansion can be expanded.
import { compareQuantities } from "@gen-operator/schema";
import { forbidden } from "../../errors/status-error.js";
import { type JsonObject, memberOf, objectAt, stringAt } from "../../json.js";
import { type AdmissionPlugin, type AdmittedWrite, refOfWrite } from "../admission.js";

const CLASSES = { group: "storage.k8s.io", version: "v1", plural: "storageclasses" };

export const claimResize: AdmissionPlugin = {
  resources: ["persistentvolumeclaims"],
  validate: checkClaimGrowth,
};

/** Throws 403 if a claim requests more storage and cannot be expanded. */
function checkClaimGrowth(write: AdmittedWrite): void {
  const { context, operation, subresource, object, oldObject } = write;
  if (operation !== "UPDATE" || subresource !== "" || object === undefined || oldObject === undefined) return;
  if ((compareQuantities(storageOf(object), storageOf(oldObject)) ?? 0) <= 0) return;
  const refuse = (detail: string): Error => forbidden(refOfWrite(write), detail);
  if (stringAt(objectAt(oldObject, "status"), "phase") !== "Bound")
    throw refuse("only bound persistent volume claims can be expanded");
  const [name, before] = [object, oldObject].map(
    (claim) => stringAt(objectAt(claim, "spec"), "storageClassName") ?? "",
  );
  const found = context.registry.find(CLASSES)?.store.get(name ?? "")?.object;
  if (name === before && memberOf(found, "allowVolumeExpansion") === true) return;
  throw refuse(
    "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize",
  );
}

function storageOf(claim: JsonObject): string {
  const requests = objectAt(objectAt(objectAt(claim, "spec"), "resources"), "requests");
  return String(memberOf(requests, "storage") ?? "0");
}
