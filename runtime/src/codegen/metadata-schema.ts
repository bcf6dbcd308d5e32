import type { Schema } from "../base/resource-definition.js";

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
    ...{ generateName: text, uid: text, resourceVersion: text, selfLink: text },
    ...{ creationTimestamp: text, deletionTimestamp: text },
    ...{ generation: number, deletionGracePeriodSeconds: number },
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
