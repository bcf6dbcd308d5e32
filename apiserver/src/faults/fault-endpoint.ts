import { statusError, unauthorized } from "../errors/status-error.js";
import { renderFailure } from "../http/answer/render.js";
import type { Answer, ApiRequest, StreamAnswer } from "../http/message.js";
import { attributesOf } from "../http/requests/authorize-request.js";
import { verbOf } from "../http/requests/request-verb.js";
import { accessDenied } from "../identity/rbac/access.js";
import type { FaultAnswer, FaultRules } from "./faults.js";

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
  { user, answer }: { user: () => string | undefined; answer: () => Promise<Answer | StreamAnswer> },
): Promise<Answer | StreamAnswer> {
  const rule = rules.take(request, { verb: verbOf(request), user });
  if (rule === undefined) return rules.refusesTokens ? renderFailure(unauthorized(), { isPretty: false }) : answer();
  if (rule.delayMs !== undefined) await new Promise((resolve) => setTimeout(resolve, rule.delayMs));
  if (rule.hang === true) return new Promise<never>(() => undefined);
  if (rule.disconnect === true) throw new ConnectionLost("by a fault rule");
  if (rule.loseAnswer === true) {
    await answer();
    throw new ConnectionLost("by a fault rule, after the request was served");
  }
  if (rule.forbid === true && request.target !== undefined)
    return renderFailure(accessDenied(FORBIDDEN_USER, attributesOf(request)), { isPretty: false });
  return rule.answer === undefined ? answer() : faultAnswer(rule.answer);
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
