import { isDeepStrictEqual } from "node:util";
import { labelNameProblems, labelValueProblems, pathSegmentProblems, qualifiedNameProblems } from "../strings/names.js";
import { isJsonObject } from "../json/json.js";
import type { Schema } from "./schema.js";

/** The most that the keys and values of all annotations may have together. */
const MAX_ANNOTATION_BYTES = 256 * 1024;

const text: Schema = { type: "string", nullable: true };
const flag: Schema = { type: "boolean", nullable: true };
const number: Schema = { type: "integer", nullable: true };
const texts: Schema = { type: "object", nullable: true, additionalProperties: { type: "string" } };
const required: Schema = { type: "string" };
/** A newer API server may have fields that are not known here. */
const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true } as const;

/** What the metadata of every object is. The schemas of kinds do not say it. */
export const METADATA_SCHEMA: Schema = {
  ...open,
  properties: {
    ...{ name: text, generateName: text, namespace: text, uid: text, resourceVersion: text, selfLink: text },
    ...{ creationTimestamp: text, deletionTimestamp: text },
    ...{ generation: { ...number, minimum: 0 }, deletionGracePeriodSeconds: number },
    ...{ labels: texts, annotations: texts },
    finalizers: { type: "array", nullable: true, items: required },
    ownerReferences: {
      type: "array",
      nullable: true,
      items: {
        ...open,
        required: ["apiVersion", "kind", "name", "uid"],
        properties: {
          ...{ apiVersion: required, kind: required, name: required, uid: required },
          ...{ controller: flag, blockOwnerDeletion: flag },
        },
      },
    },
    managedFields: {
      type: "array",
      nullable: true,
      items: {
        ...open,
        properties: {
          ...{ manager: text, operation: text, apiVersion: text, time: text, fieldsType: text, subresource: text },
          fieldsV1: { ...open, nullable: true },
        },
      },
    },
  },
};

/** Lists what the types of metadata do not say and the API server checks of every object: names, keys and values of labels, annotations, owners. */
export function checkMetadataNames(metadata: object, fail: (member: string, message: string) => void): void {
  const { name, generateName, namespace, labels, annotations, finalizers, ownerReferences } = metadata as {
    readonly [member: string]: unknown;
  };
  const failAll = (member: string, problems: readonly string[]) => problems.forEach((each) => fail(member, each));
  if (typeof name === "string") failAll("name", pathSegmentProblems(name));
  if (typeof generateName === "string") failAll("generateName", pathSegmentProblems(generateName, { isPrefix: true }));
  if (typeof namespace === "string" && namespace !== "") failAll("namespace", labelNameProblems(namespace));
  for (const [key, value] of Object.entries(isJsonObject(labels) ? labels : {})) {
    failAll(`labels[${key}]`, qualifiedNameProblems(key));
    if (typeof value === "string") failAll(`labels[${key}]`, labelValueProblems(value));
  }
  let size = 0;
  for (const [key, value] of Object.entries(isJsonObject(annotations) ? annotations : {})) {
    // The API server takes capital letters in the prefix of an annotation.
    failAll(`annotations[${key}]`, qualifiedNameProblems(key.toLowerCase()));
    size += Buffer.byteLength(key) + Buffer.byteLength(String(value));
  }
  if (size > MAX_ANNOTATION_BYTES) fail("annotations", `must have at most ${MAX_ANNOTATION_BYTES} bytes`);
  for (const [index, each] of (Array.isArray(finalizers) ? finalizers : []).entries())
    if (typeof each === "string") failAll(`finalizers[${index}]`, qualifiedNameProblems(each));
  checkOwners(Array.isArray(ownerReferences) ? ownerReferences : [], fail);
}

function checkOwners(references: readonly unknown[], fail: (member: string, message: string) => void): void {
  let controllers = 0;
  for (const [index, reference] of references.entries()) {
    // The API server drops an owner that is there twice.
    if (!isJsonObject(reference) || references.findIndex((each) => isDeepStrictEqual(each, reference)) < index)
      continue;
    const at = `ownerReferences[${index}]`;
    const { apiVersion, kind, controller } = reference;
    for (const name of ["kind", "name", "uid"]) if (reference[name] === "") fail(`${at}.${name}`, "must not be empty");
    if (typeof apiVersion === "string" && !/^(?:[^/]*\/)?[^/]+$/.test(apiVersion))
      fail(`${at}.apiVersion`, "must be a version, or a group and a version");
    if (apiVersion === "v1" && kind === "Event") fail(at, "must not be an Event, which cannot own objects");
    if (controller === true && ++controllers > 1) fail(`${at}.controller`, "must be true for one owner at most");
  }
}
