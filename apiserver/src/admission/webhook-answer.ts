import { NumberRangeError, parseJson } from "../decode/body.js";
import { BodySyntaxError } from "../errors/decode-errors.js";
import { quote } from "../errors/go-format.js";
import { type StatusDetails, type StatusError, statusError } from "../errors/status-error.js";
import { type JsonObject, type JsonValue, arrayAt, objectAt, stringAt } from "../json.js";
import { type WebhookReply, checkGiven, readReply } from "../webhooks/webhook-client.js";

const REVIEW_KIND = "AdmissionReview";
const REVIEW_VERSION = "admission.k8s.io/v1";
const DETAIL_MEMBERS = ["name", "group", "kind", "uid", "causes", "retryAfterSeconds"];

/** The decision of a webhook. */
export interface Verdict {
  /** The error to return if the webhook denied the write. */
  refusal?: StatusError;
  /** The operations of a JSON Patch. */
  patch?: JsonValue;
  warnings: string[];
}

/** Parses the response of a webhook. Throws an Error, worded as in kube-apiserver, for a response that is invalid or has another uid. */
export function readVerdict(reply: WebhookReply, of: { webhook: string; uid: string; mutates: boolean }): Verdict {
  const review = reviewIn(reply);
  const response = objectAt(review, "response");
  if (response === undefined) throw invalidResponse("webhook response was absent");
  const uid = stringAt(response, "uid") ?? "";
  if (uid !== of.uid) throw invalidResponse(`expected response.uid=${quote(of.uid)}, got ${quote(uid)}`);
  try {
    checkGiven(review, { apiVersion: REVIEW_VERSION, kind: REVIEW_KIND });
  } catch (error) {
    throw invalidResponse((error as Error).message);
  }
  checkPatchType(response, of);
  const warnings = (arrayAt(response, "warnings") ?? []).map(String);
  if (response["allowed"] !== true) {
    return { refusal: refusalOf(of.webhook, objectAt(response, "status")), warnings };
  }
  const patch = patchOf(response);
  return { warnings, ...(patch === undefined ? {} : { patch }) };
}

function reviewIn(reply: WebhookReply): JsonObject {
  try {
    return readReply(reply, { kind: REVIEW_KIND, apiVersions: [REVIEW_VERSION] });
  } catch (error) {
    throw callFailed((error as Error).message);
  }
}

// patch and patchType must be set together, even in a denial.
function checkPatchType({ patch, patchType }: JsonObject, { mutates }: { mutates: boolean }): void {
  const hasPatch = (patch ?? "") !== "";
  const hasType = (patchType ?? undefined) !== undefined;
  if (!mutates && hasPatch) throw invalidResponse("validating webhook may not return response.patch");
  if (!mutates && hasType) throw invalidResponse("validating webhook may not return response.patchType");
  if (hasPatch && !hasType) throw invalidResponse("webhook returned response.patch but not response.patchType");
  if (!hasPatch && hasType) throw invalidResponse("webhook returned response.patchType but not response.patch");
  if (patchType === "") throw invalidResponse('webhook returned invalid response.patchType of ""');
}

function refusalOf(webhook: string, status: JsonObject | undefined): StatusError {
  const reason = stringAt(status, "reason");
  const text = stringAt(status, "message") ?? reason;
  const code = status?.["code"];
  const details = objectAt(status, "details");
  return statusError({
    // As in kube-apiserver, a code below 400 is replaced.
    code: typeof code === "number" && code >= 400 ? code : 400,
    message: `admission webhook ${quote(webhook)} denied the request${text === undefined ? " without explanation" : `: ${text}`}`,
    ...(reason === undefined ? {} : { reason }),
    ...(details === undefined ? {} : { details: knownDetails(details) }),
  });
}

function knownDetails(details: JsonObject): StatusDetails {
  return Object.fromEntries(Object.entries(details).filter(([name]) => DETAIL_MEMBERS.includes(name))) as StatusDetails;
}

function patchOf({ patch, patchType }: JsonObject): JsonValue | undefined {
  if ((patch ?? "") === "") return undefined;
  const bytes = bytesOf(String(patch));
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
