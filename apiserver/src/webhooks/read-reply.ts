import { BodySyntaxError } from "../decode/body-syntax-error.js";
import { NumberRangeError } from "../decode/check-limits.js";
import { parseYaml } from "../decode/parse-body.js";
import { quote } from "../errors/quote.js";
import { unregisteredKind } from "../errors/unregistered.js";
import { isObject, stringAt, type JsonObject } from "../json.js";
import type { WebhookReply } from "./webhook-client.js";

const GO_TYPE_META =
  'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';

/**
 * Reads the review that a webhook answered; throws an Error, in the words of Go's client, for what is none of this kind. Where the kind or the version is not
 * given, it is taken for the expected one at first; `checkGiven` refuses it after other checks.
 */
export function readReply(reply: WebhookReply, of: { kind: string; apiVersions: readonly string[] }): JsonObject {
  const { status, body } = reply;
  if (status < 200 || status > 299) throw new Error(textOfFailure(reply));
  const review = parsed(body);
  const apiVersion = stringAt(review, "apiVersion") || (of.apiVersions[0] ?? "");
  const kind = stringAt(review, "kind") || of.kind;
  if (kind === of.kind && of.apiVersions.includes(apiVersion)) return review;
  throw new Error(unregisteredKind(kind, apiVersion));
}

/** Fails for a review that does not say of which kind and version it is. */
export function checkGiven(review: JsonObject, expected: { apiVersion: string; kind: string }): void {
  const [apiVersion, kind] = [stringAt(review, "apiVersion") ?? "", stringAt(review, "kind") ?? ""];
  if (apiVersion === expected.apiVersion && kind === expected.kind) return;
  const given = `${apiVersion.includes("/") ? "" : "/"}${apiVersion}, Kind=${kind}`;
  throw new Error(`expected webhook response of ${expected.apiVersion}, Kind=${expected.kind}, got ${given}`);
}

function parsed(body: string): JsonObject {
  const start = "couldn't get version/kind; json parse error: ";
  try {
    // What is no JSON is read as YAML.
    const { value } = parseYaml(Buffer.from(body));
    if (isObject(value)) return value;
    const type = Array.isArray(value) ? "array" : typeof value;
    throw new Error(`${start}json: cannot unmarshal ${type} into Go value of ${GO_TYPE_META}`);
  } catch (error) {
    if (!(error instanceof BodySyntaxError || error instanceof NumberRangeError)) throw error;
    throw new Error(`${start}${error.message}`);
  }
}

function textOfFailure({ status, body, contentType }: WebhookReply): string {
  const told = messageOfStatus(body);
  if (told !== undefined) return told;
  if (status === 404) return "the server could not find the requested resource";
  if (status < 500) return `the server responded with the status code ${status} but did not return more information`;
  const isText = contentType === "" || contentType.startsWith("text/");
  const shown = (isText && body.trim()) || "unknown";
  return `an error on the server (${quote(shown)}) has prevented the request from succeeding`;
}

function messageOfStatus(body: string): string | undefined {
  if (!body.trimStart().startsWith("{")) return undefined;
  try {
    const value: unknown = JSON.parse(body);
    return isObject(value) && value["kind"] === "Status" && value["status"] === "Failure"
      ? (stringAt(value, "message") ?? "")
      : undefined;
  } catch {
    return undefined;
  }
}
