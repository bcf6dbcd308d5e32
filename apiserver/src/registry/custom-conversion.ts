import type { ServedType } from "../builtin/served-type.js";
import { type JsonObject, clone, deepEqual } from "../json.js";
import { apiVersionOf } from "../object/object-meta.js";
import type { Conversion, TypeRules, WebhookForms } from "./registry.js";

/** Calls the conversion webhook of a CRD to convert objects to `apiVersion`. Throws a StatusError if the webhook fails or the response is invalid. */
export type AskWebhook = (
  definition: JsonObject,
  request: { objects: readonly JsonObject[]; apiVersion: string },
) => Promise<JsonObject[]>;

/**
 * Returns the conversion between a version of a custom resource and its stored form. Objects are read through the current schema of the version that
 * they are stored in: only that schema sets defaults; unknown fields are pruned by it and by the schema of the requested version.
 */
export function customConversion(
  type: ServedType,
  { rulesOf, ask }: { rulesOf: (type: ServedType) => TypeRules; ask: AskWebhook | undefined },
): Conversion {
  const apiVersion = apiVersionOf(type);
  const versions = versionsOf(type);
  const storedVersion = apiVersionOf({ group: type.group, version: versions.find(isStorage)?.name ?? type.version });
  const rules = new Map<string, TypeRules>();
  const rulesIn = (version: string): TypeRules => {
    let found = rules.get(version);
    if (found === undefined) {
      const given = versions.find(({ name }) => apiVersionOf({ group: type.group, version: name }) === version);
      rules.set(version, (found = rulesOf(given === undefined ? type : inVersion(type, given))));
    }
    return found;
  };
  const completed = (stored: JsonObject): JsonObject => {
    const object = clone(stored);
    const { decode, fillDefaults } = rulesIn(String(stored["apiVersion"]));
    decode(object);
    fillDefaults(object);
    return object;
  };
  const conversion: Conversion = {
    toStored: (object) => (storedVersion === apiVersion ? object : { ...object, apiVersion: storedVersion }),
    fromStored(object) {
      const view = { ...completed(object), apiVersion };
      if (object["apiVersion"] !== apiVersion) rulesIn(apiVersion).decode(view);
      return deepEqual(view, object) ? object : view;
    },
  };
  const definition = type.custom?.crd;
  if (ask === undefined || definition === undefined || !isByWebhook(definition)) return conversion;
  const into = async (version: string, objects: readonly JsonObject[]): Promise<JsonObject[]> => {
    const forms = await ask(definition, { objects, apiVersion: version });
    for (const form of forms) rulesIn(version).decode(form);
    return forms;
  };
  const webhook: WebhookForms = {
    storedVersion,
    into: async (version, object) => (await into(version, [object]))[0] as JsonObject,
    async fromStored(objects) {
      const completedObjects = objects.map(completed);
      const forms = await into(apiVersion, completedObjects.map(withoutResourceVersion));
      return forms.map((form, index) => withResourceVersionOf(completedObjects[index] as JsonObject, form));
    },
  };
  return { ...conversion, webhook };
}

function isByWebhook(definition: JsonObject): boolean {
  const { conversion, versions } = definition["spec"] as unknown as {
    conversion?: { strategy?: string };
    versions: readonly unknown[];
  };
  return conversion?.strategy === "Webhook" && versions.length > 1;
}

// Stored objects have no resourceVersion, and conversion webhooks do not receive one.
function withoutResourceVersion(object: JsonObject): JsonObject {
  const { resourceVersion: _, ...metadata } = object["metadata"] as JsonObject;
  return { ...object, metadata };
}

function withResourceVersionOf(stored: JsonObject, form: JsonObject): JsonObject {
  const { resourceVersion } = stored["metadata"] as JsonObject;
  const metadata = form["metadata"] as JsonObject;
  return { ...form, metadata: resourceVersion === undefined ? metadata : { ...metadata, resourceVersion } };
}

interface CustomVersion {
  name: string;
  storage: boolean;
  schema?: { openAPIV3Schema?: JsonObject };
}

function versionsOf({ custom }: ServedType): CustomVersion[] {
  return (custom?.crd["spec"] as unknown as { versions: CustomVersion[] }).versions;
}

function isStorage({ storage }: CustomVersion): boolean {
  return storage;
}

function inVersion(type: ServedType, { name, schema }: CustomVersion): ServedType {
  if (type.custom === undefined) return type;
  return { ...type, version: name, custom: { ...type.custom, schema: schema?.openAPIV3Schema ?? {} } };
}
