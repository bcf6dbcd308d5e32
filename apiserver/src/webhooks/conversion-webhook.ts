// Requests to conversion webhooks and validation of their responses, with the order and messages of kube-apiserver
// (apiextensions-apiserver/pkg/apiserver/conversion). Unlike kube-apiserver, which sends one request per object, several objects are converted at
// once.
import { randomUUID } from "node:crypto";
import { labelValueProblems, qualifiedNameProblems } from "../validation/names.js";
import { type FieldError, fieldErrorText, invalidError } from "../errors/field-error.js";
import { quote } from "../errors/go-format.js";
import { plainError } from "../errors/status-error.js";
import { type JsonObject, type JsonValue, arrayAt, clone, isObject, objectAt, stringAt } from "../json.js";
import type { AskWebhook } from "../registry/custom-conversion.js";
import { type WebhookClient, checkGiven, readReply } from "./webhook-client.js";

const GROUP = "apiextensions.k8s.io";
const TIMEOUT_SECONDS = 30;
const MAX_OBJECTS = 100;
// Limits the size of the response.
const MAX_CHARACTERS = 1_000_000;

/** Creates the function that calls conversion webhooks of CRDs. */
export function conversionWebhooks(client: Pick<WebhookClient, "post">): AskWebhook {
  return async (definition, { objects, apiVersion }) => {
    const forms: JsonObject[] = [];
    for (const batch of batchesOf(objects))
      forms.push(...(await convertBatch(client, definition, { objects: batch, apiVersion })));
    return forms;
  };
}

function batchesOf(objects: readonly JsonObject[]): JsonObject[][] {
  const batches: JsonObject[][] = [];
  let left = 0;
  for (const object of objects) {
    const { length } = JSON.stringify(object);
    const batch = batches.at(-1);
    if (batch === undefined || batch.length === MAX_OBJECTS || length > left) {
      batches.push([object]);
      left = MAX_CHARACTERS - length;
    } else {
      batch.push(object);
      left -= length;
    }
  }
  return batches;
}

async function convertBatch(
  client: Pick<WebhookClient, "post">,
  definition: JsonObject,
  request: { objects: JsonObject[]; apiVersion: string },
): Promise<JsonObject[]> {
  const { objects, apiVersion } = request;
  const webhook = objectAt(objectAt(objectAt(definition, "spec"), "conversion"), "webhook");
  const versions = (arrayAt(webhook, "conversionReviewVersions") ?? []).map(String);
  const version = versions.find((one) => one === "v1" || one === "v1beta1");
  if (version === undefined) throw plainError("no supported conversion review versions");
  const review = { kind: "ConversionReview", apiVersion: `${GROUP}/${version}` };
  const uid = randomUUID();
  const target = { clientConfig: objectAt(webhook, "clientConfig") ?? {}, timeoutSeconds: TIMEOUT_SECONDS };
  const asked = { ...review, request: { uid, desiredAPIVersion: apiVersion, objects }, response: EMPTY_RESPONSE };
  const subject = `conversion webhook for ${kindTextOf(objects[0] as JsonObject)}`;
  let converted: readonly JsonValue[];
  try {
    const reply = await client.post(target, asked);
    converted = convertedObjectsOf(readReply(reply, { kind: review.kind, apiVersions: REVIEWS }), { version, uid });
  } catch (error) {
    throw plainError(`${subject} failed: ${(error as Error).message}`);
  }
  if (converted.length !== objects.length) {
    throw plainError(`${subject} returned ${converted.length} objects, expected ${objects.length}`);
  }
  return converted.map((form, index) => checkedForm(form, { original: objects[index] as JsonObject, apiVersion }));
}

const REVIEWS = [`${GROUP}/v1`, `${GROUP}/v1beta1`];
const EMPTY_RESPONSE = { uid: "", convertedObjects: null, result: { metadata: {} } };

function convertedObjectsOf(review: JsonObject, asked: { version: string; uid: string }): readonly JsonValue[] {
  const given = (stringAt(review, "apiVersion") ?? "").slice(GROUP.length + 1);
  if (given !== "" && given !== asked.version) {
    const kind = "ConversionReview";
    throw new Error(`converting (${given}.${kind}) to (${asked.version}.${kind}): unknown conversion`);
  }
  // In v1beta1, responses do not need apiVersion, kind, and uid.
  const isStrict = asked.version === "v1";
  if (isStrict) checkGiven(review, { apiVersion: `${GROUP}/v1`, kind: "ConversionReview" });
  const response = objectAt(review, "response");
  if (response === undefined) throw new Error("no response provided");
  const uid = stringAt(response, "uid") ?? "";
  if (isStrict && uid !== asked.uid) {
    throw new Error(`expected response.uid=${quote(asked.uid)}, got ${quote(uid)}`);
  }
  const result = objectAt(response, "result");
  const status = stringAt(result, "status") ?? "";
  if (status !== "Success") {
    const message = stringAt(result, "message") ?? "";
    throw new Error(message === "" ? `response.result.status was '${status}', not 'Success'` : message);
  }
  return arrayAt(response, "convertedObjects") ?? [];
}

function checkedForm(given: JsonValue, of: { original: JsonObject; apiVersion: string }): JsonObject {
  const { original, apiVersion } = of;
  if (given === null) throw plainError("unexpected end of JSON input");
  if (!isObject(given)) {
    const type = Array.isArray(given) ? "array" : typeof given;
    throw plainError(`json: cannot unmarshal ${type} into Go value of type map[string]interface {}`);
  }
  const kind = stringAt(given, "kind") ?? "";
  if (kind === "") throw plainError(`Object 'Kind' is missing in '${JSON.stringify(given)}'`);
  const returned = `conversion webhook for ${kindTextOf(original)} returned invalid`;
  const version = stringAt(given, "apiVersion") ?? "";
  if (version !== apiVersion) {
    const detail = `invalid groupVersion (expected ${apiVersion}, received ${version})`;
    throw plainError(`${returned} object at index 0: ${detail}`);
  }
  if (kind !== original["kind"]) {
    const detail = `invalid kind (expected ${String(original["kind"])}, received ${kind})`;
    throw plainError(`${returned} object at index 0: ${detail}`);
  }
  const before = objectAt(original, "metadata") ?? {};
  const after = objectAt(given, "metadata");
  const changed = IDENTITY.find(([member]) => (stringAt(before, member) ?? "") !== (stringAt(after, member) ?? ""));
  if (changed !== undefined) {
    const [member, name] = changed;
    const [expected, got] = [stringAt(before, member) ?? "", stringAt(after, member) ?? ""];
    throw plainError(`${returned} object: must have the same ${name}: ${expected} != ${got}`);
  }
  try {
    return { ...given, kind, apiVersion, metadata: restoredMetadata(before, after ?? {}) };
  } catch (error) {
    throw plainError(`${returned} metadata: ${(error as Error).message}`);
  }
}

const IDENTITY = [
  ["name", "name"],
  ["namespace", "namespace"],
  ["uid", "UID"],
] as const;

// Webhooks may only change labels and annotations of the metadata.
function restoredMetadata(before: JsonObject, after: JsonObject): JsonObject {
  const metadata = clone(before);
  for (const member of ["labels", "annotations"]) {
    const given = after[member] ?? undefined;
    delete metadata[member];
    if (given === undefined) continue;
    if (!isObject(given)) throw new Error(`invalid metadata.${member} of type ${goTypeOf(given)} in converted object`);
    for (const [key, value] of Object.entries(given)) {
      if (typeof value === "string") continue;
      throw new Error(`metadata.${member}[${key}] must be a string, but is ${goTypeOf(value)} in converted object`);
    }
    const texts = given as Record<string, string>;
    const errors = member === "labels" ? labelErrors(texts) : annotationErrors(texts);
    if (errors.length > 0) throw new Error(aggregateText(errors.map(fieldErrorText)));
    metadata[member] = given;
  }
  return metadata;
}

function labelErrors(labels: Record<string, string>): FieldError[] {
  const field = "metadata.labels";
  return Object.entries(labels).flatMap(([key, value]) => [
    ...qualifiedNameProblems(key).map((detail) => invalidError(field, key, detail)),
    ...labelValueProblems(value).map((detail) => invalidError(field, value, detail)),
  ]);
}

function annotationErrors(annotations: Record<string, string>): FieldError[] {
  return Object.keys(annotations).flatMap((key) =>
    qualifiedNameProblems(key.toLowerCase()).map((detail) => invalidError("metadata.annotation", key, detail)),
  );
}

function aggregateText(texts: readonly string[]): string {
  const distinct = [...new Set(texts)];
  return distinct.length === 1 ? (distinct[0] as string) : `[${distinct.join(", ")}]`;
}

function goTypeOf(value: JsonValue): string {
  if (value === null) return "<nil>";
  if (Array.isArray(value)) return "[]interface {}";
  if (typeof value === "number") return Number.isInteger(value) ? "int64" : "float64";
  return typeof value === "boolean" ? "bool" : typeof value === "string" ? "string" : "map[string]interface {}";
}

function kindTextOf(object: JsonObject): string {
  return `${String(object["apiVersion"])}, Kind=${String(object["kind"])}`;
}
