import { BodySyntaxError } from "../decode/body-syntax-error.js";
import { NumberRangeError } from "../decode/check-limits.js";
import { parseJson, parseYaml } from "../decode/parse-body.js";
import { quote } from "../errors/quote.js";
import { statusError, type StatusDetails, type StatusError } from "../errors/status-error.js";
import { arrayAt, isObject, objectAt, stringAt, type JsonObject, type JsonValue } from "../json.js";
import type { WebhookReply } from "../webhooks/webhook-client.js";

const SCHEME = 'scheme "pkg/runtime/scheme.go:111"';
const GO_TYPE_META =
  'type struct { APIVersion string "json:\\"apiVersion,omitempty\\""; Kind string "json:\\"kind,omitempty\\"" }';
const DETAIL_MEMBERS = ["name", "group", "kind", "uid", "causes", "retryAfterSeconds"];

/** What a webhook decided. */
export interface Verdict {
  /** The failure that a refused write is answered with. */
  refusal?: StatusError;
  /** The operations of a JSON patch. */
  patch?: JsonValue;
  warnings: string[];
}

/** Reads the answer of a webhook; throws an Error, in the words of kube-apiserver, for what is no answer to the review. */
export function readVerdict(reply: WebhookReply, of: { webhook: string; uid: string; mutates: boolean }): Verdict {
  const response = responseOf(reply);
  const uid = stringAt(response, "uid") ?? "";
  if (uid !== of.uid) throw invalidResponse(`expected response.uid=${quote(of.uid)}, got ${quote(uid)}`);
  const warnings = (arrayAt(response, "warnings") ?? []).map(String);
  if (response["allowed"] !== true) {
    return { refusal: refusalOf(of.webhook, objectAt(response, "status")), warnings };
  }
  const patch = patchOf(response, of);
  return { warnings, ...(patch === undefined ? {} : { patch }) };
}

function responseOf({ status, body }: WebhookReply): JsonObject {
  if (status < 200 || status > 299) throw callFailed(textOfStatus(status, body));
  const review = parsed(body);
  const apiVersion = stringAt(review, "apiVersion") ?? "";
  const kind = stringAt(review, "kind") ?? "";
  if (kind !== "AdmissionReview" || apiVersion !== "admission.k8s.io/v1") {
    throw callFailed(`no kind ${quote(kind)} is registered for version ${quote(apiVersion)} in ${SCHEME}`);
  }
  const response = objectAt(review, "response");
  if (response === undefined) throw invalidResponse("webhook response was absent");
  return response;
}

function parsed(body: string): JsonObject {
  const start = "couldn't get version/kind; json parse error: ";
  try {
    // What is no JSON is read as YAML.
    const { value } = parseYaml(Buffer.from(body));
    if (isObject(value)) return value;
    const type = Array.isArray(value) ? "array" : typeof value;
    throw callFailed(`${start}json: cannot unmarshal ${type} into Go value of ${GO_TYPE_META}`);
  } catch (error) {
    if (!(error instanceof BodySyntaxError || error instanceof NumberRangeError)) throw error;
    throw callFailed(`${start}${error.message}`);
  }
}

function textOfStatus(status: number, body: string): string {
  if (status === 404) return "the server could not find the requested resource";
  if (status >= 500)
    return `an error on the server (${quote(body.trim() || "unknown")}) has prevented the request from succeeding`;
  return `the server responded with the status code ${status} but did not return more information`;
}

function refusalOf(webhook: string, status: JsonObject | undefined): StatusError {
  const reason = stringAt(status, "reason");
  const text = stringAt(status, "message") ?? reason;
  const code = status?.["code"];
  const details = objectAt(status, "details");
  return statusError({
    // A refusal is a failure, whatever code its webhook gives it.
    code: typeof code === "number" && code >= 400 ? code : 400,
    message: `admission webhook ${quote(webhook)} denied the request${text === undefined ? " without explanation" : `: ${text}`}`,
    ...(reason === undefined ? {} : { reason }),
    ...(details === undefined ? {} : { details: knownDetails(details) }),
  });
}

function knownDetails(details: JsonObject): StatusDetails {
  return Object.fromEntries(Object.entries(details).filter(([name]) => DETAIL_MEMBERS.includes(name))) as StatusDetails;
}

function patchOf(response: JsonObject, { mutates }: { mutates: boolean }): JsonValue | undefined {
  const { patch, patchType } = response;
  if ((patch ?? "") === "") return undefined;
  if (!mutates) throw invalidResponse("validating webhook may not return response.patch");
  const bytes = bytesOf(String(patch));
  if (patchType === undefined) throw invalidResponse("webhook returned response.patch but not response.patchType");
  if (patchType !== "JSONPatch") throw new Error(`unsupported response.patchType ${quote(String(patchType))}`);
  try {
    return parseJson(bytes).value;
  } catch (error) {
    if (!(error instanceof BodySyntaxError || error instanceof NumberRangeError)) throw error;
    throw new Error(`received undecodable patch in webhook response: ${error.message}`);
  }
}

function bytesOf(base64: string): Buffer {
  const wrong = base64.search(/[^A-Za-z0-9+/=]/);
  if (wrong >= 0) throw callFailed(`illegal base64 data at input byte ${wrong}`);
  return Buffer.from(base64, "base64");
}

function callFailed(detail: string): Error {
  return new Error(`failed to call webhook: ${detail}`);
}

function invalidResponse(detail: string): Error {
  return new Error(`received invalid webhook response: ${detail}`);
}
