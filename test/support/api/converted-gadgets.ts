// A kind with two versions that a webhook converts.
import type { Crd } from "./api-server.js";
import type { ReviewRequest, WebhookAnswer } from "./webhook-server.js";

/** The group of gadgets. */
export const GROUP = "convert.example.com";
/** The paths of gadgets in their two versions. */
export const PATHS = {
  v1: `/apis/${GROUP}/v1/namespaces/default/gadgets`,
  v2: `/apis/${GROUP}/v2/namespaces/default/gadgets`,
};
/** A version of gadgets. */
export type Version = keyof typeof PATHS;
/** A gadget, or a part of one. */
export type Form = Record<string, unknown> & { metadata: Record<string, unknown>; spec?: Record<string, unknown> };
/** How a webhook answers a ConversionReview. */
export type Convert = (request: ReviewRequest) => WebhookAnswer;

/** In v1 a size is a number, in v2 it is the length, a text. */
function formOf(object: Form, apiVersion: string): Form {
  // Server-side apply asks for parts of objects, too.
  if (object.spec === undefined) return { ...object, apiVersion };
  const { size, length, ...rest } = object.spec;
  const own = length === undefined ? { length: String(size) } : { size: Number(length) };
  return { ...object, apiVersion, spec: size === undefined && length === undefined ? rest : { ...rest, ...own } };
}

/** Converts what a review asks for. */
export const formsOf = ({ objects, desiredAPIVersion }: ReviewRequest): Form[] =>
  (objects as Form[]).map((object) => formOf(object, String(desiredAPIVersion)));
/** The result of a conversion that succeeded. */
export const SUCCESS = { status: "Success" };
/** The answer with these objects. */
export const answerOf = (convertedObjects: unknown[]): WebhookAnswer => ({
  response: { result: SUCCESS, convertedObjects },
});
/** Answers as a webhook should. */
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

/** The definition of gadgets with a webhook. */
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

/** A gadget in one of its versions. */
export const gadget = (version: Version, name: string, spec: object, metadata: object = {}) => ({
  apiVersion: `${GROUP}/${version}`,
  kind: "Gadget",
  metadata: { name, ...metadata },
  spec,
});
