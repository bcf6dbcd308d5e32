import { sleep } from "../real-time.js";
import { statusError, unauthorized } from "../errors/status-error.js";
import { renderFailure } from "../http/answer/render.js";
import type { Answer, ApiRequest, StreamAnswer } from "../http/message.js";
import { attributesOf } from "../http/requests/authorize-request.js";
import { verbOf } from "../http/requests/request-verb.js";
import { accessDenied } from "../identity/rbac/access.js";
import type { AskedFor } from "./fault-scope.js";
import type { FaultAnswer, FaultRules } from "./faults.js";
import { answerStale } from "./stale-answers.js";

/** Says that a request gets no answer; the listener breaks its connection. */
export class ConnectionLost extends Error {
  override readonly name = "ConnectionLost";
}

// Whoever asks: what a rule forbids says nothing of roles.
const FORBIDDEN_USER = { username: "admin", groups: [] };

/** Answers a request, unless a rule says otherwise. */
export async function answerWithFaults(
  rules: FaultRules,
  request: ApiRequest,
  { asked, serve }: { asked: AskedFor; serve: (request: ApiRequest) => Promise<Answer | StreamAnswer> },
): Promise<Answer | StreamAnswer> {
  const verb = verbOf(request);
  const active = rules.take(asked, verb);
  if (active === undefined)
    return rules.refusesTokens ? renderFailure(unauthorized(), { isPretty: false }) : serve(request);
  const { rule, revision } = active;
  if (rule.delayMs !== undefined) await sleep(rule.delayMs);
  if (rule.hang === true) return new Promise<never>(() => undefined);
  if (rule.disconnect === true) throw new ConnectionLost("by a fault rule");
  if (rule.loseAnswer === true) {
    await serve(request);
    throw new ConnectionLost("by a fault rule, after the request was served");
  }
  if (rule.forbid === true && request.target !== undefined)
    return renderFailure(accessDenied(FORBIDDEN_USER, attributesOf(request)), { isPretty: false });
  if (rule.answer !== undefined) return faultAnswer(rule.answer);
  const answer = await (rule.stale === true ? answerStale(request, { verb, revision, serve }) : serve(request));
  return rule.cutAnswer === true && answer.kind === "answer" ? { ...answer, isCut: true } : answer;
}

const REASONS: Record<number, string> = {
  400: "BadRequest",
  401: "Unauthorized",
  403: "Forbidden",
  404: "NotFound",
  405: "MethodNotAllowed",
  409: "Conflict",
  410: "Expired",
  422: "Invalid",
  429: "TooManyRequests",
  500: "InternalError",
  503: "ServiceUnavailable",
  504: "Timeout",
};

function faultAnswer(fault: FaultAnswer): Answer {
  const { status, message = `fault: ${fault.status}`, retryAfterSeconds, body } = fault;
  const reason = fault.reason ?? REASONS[status];
  const details = retryAfterSeconds === undefined ? {} : { details: { retryAfterSeconds } };
  const failure = statusError({ code: status, message, ...(reason === undefined ? {} : { reason }), ...details });
  const answer = renderFailure(failure, { isPretty: false });
  return body === undefined ? answer : { ...answer, body, contentType: fault.contentType ?? answer.contentType };
}
