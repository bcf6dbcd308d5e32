// What the metadata of a custom resource looks like; CRD schemas never spell it out. Facts of meta/v1 in Kubernetes 1.36.
import type { JsonObject } from "../../json.js";

/** The name of the ObjectMeta schema. */
export const OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

const text: JsonObject = { type: "string" };
const time: JsonObject = { type: "string", format: "date-time" };
const int64: JsonObject = { type: "integer", format: "int64" };
const texts: JsonObject = { type: "object", additionalProperties: text };

const ownerReference: JsonObject = {
  type: "object",
  "x-kubernetes-map-type": "atomic",
  properties: {
    apiVersion: text,
    blockOwnerDeletion: { type: "boolean" },
    controller: { type: "boolean" },
    kind: text,
    name: text,
    uid: { type: "string", default: "" },
  },
};

const managedFieldsEntry: JsonObject = {
  type: "object",
  properties: {
    apiVersion: text,
    fieldsType: text,
    fieldsV1: { type: "object" },
    manager: text,
    operation: text,
    subresource: text,
    time,
  },
};

/** The schemas to which the metadata of custom resources refers, by name. */
export const objectMetaSchemas: Record<string, unknown> = {
  [OBJECT_META]: {
    type: "object",
    properties: {
      annotations: texts,
      creationTimestamp: time,
      deletionGracePeriodSeconds: int64,
      deletionTimestamp: time,
      finalizers: { type: "array", items: text, "x-kubernetes-list-type": "set" },
      generateName: text,
      generation: int64,
      labels: texts,
      managedFields: { type: "array", items: managedFieldsEntry, "x-kubernetes-list-type": "atomic" },
      name: text,
      namespace: text,
      ownerReferences: {
        type: "array",
        items: ownerReference,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["uid"],
      },
      resourceVersion: text,
      selfLink: text,
      uid: text,
    },
  },
};
