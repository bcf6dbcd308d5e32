// A kind with two versions and a conversion webhook.
import type { Crd } from "./api-server.js";
import type { ReviewRequest, WebhookAnswer } from "./webhook-server.js";

export const GROUP = "convert.example.com";
/** The paths of gadgets in both versions. */
export const PATHS = {
  v1: `/apis/${GROUP}/v1/namespaces/default/gadgets`,
  v2: `/apis/${GROUP}/v2/namespaces/default/gadgets`,
};
export type Version = keyof typeof PATHS;
/** A gadget, or a partial one. */
export type Form = Record<string, unknown> & { metadata: Record<string, unknown>; spec?: Record<string, unknown> };
/** Returns the response of the webhook to a ConversionReview. */
export type Convert = (request: ReviewRequest) => WebhookAnswer;

/** Converts a gadget: v1 has a numeric `size`, v2 a string `length`. */
function formOf(object: Form, apiVersion: string): Form {
  // Server-side apply also converts partial objects.
  if (object.spec === undefined) return { ...object, apiVersion };
  const { size, length, ...rest } = object.spec;
  const own = length === undefined ? { length: String(size) } : { size: Number(length) };
  return { ...object, apiVersion, spec: size === undefined && length === undefined ? rest : { ...rest, ...own } };
}

/** Converts the objects of a ConversionReview. */
export const formsOf = ({ objects, desiredAPIVersion }: ReviewRequest): Form[] =>
  (objects as Form[]).map((object) => formOf(object, String(desiredAPIVersion)));
/** The result of a successful conversion. */
export const SUCCESS = { status: "Success" };
/** Returns a successful response with the converted objects. */
export const answerOf = (convertedObjects: unknown[]): WebhookAnswer => ({
  response: { result: SUCCESS, convertedObjects },
});
/** Converts the objects of a request as a webhook should. */
export const convert: Convert = (request) => answerOf(formsOf(request));

const versionOf = (name: Version, properties: object) => ({
  name,
  served: true,
  storage: name === "v1",
  subresources: { status: {} },
  schema: {
    openAPIV3Schema: {
      type: "object",
      properties: {
        spec: { type: "object", properties: { ...properties, kept: { type: "string" } } },
        status: { type: "object", properties: { phase: { type: "string" } } },
      },
    },
  },
});

/** Returns the CRD of gadgets with a conversion webhook. */
export const gadgetDefinition = (clientConfig: object): Crd & object =>
  ({
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `gadgets.${GROUP}` },
    spec: {
      group: GROUP,
      scope: "Namespaced",
      names: { plural: "gadgets", singular: "gadget", kind: "Gadget", listKind: "GadgetList" },
      versions: [versionOf("v1", { size: { type: "integer" } }), versionOf("v2", { length: { type: "string" } })],
      conversion: { strategy: "Webhook", webhook: { conversionReviewVersions: ["v1"], clientConfig } },
    },
  }) as Crd;

/** Returns a gadget in a version. */
export const gadget = (version: Version, name: string, spec: object, metadata: object = {}) => ({
  apiVersion: `${GROUP}/${version}`,
  kind: "Gadget",
  metadata: { name, ...metadata },
  spec,
});
