// Who may use the debug endpoint: whoever has its token, and asks it by a name of this machine. A web page in a browser can do neither: its
// requests carry its origin, or, where its own name was made to lead here (DNS rebinding), that name.
import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { textAnswer, type EndpointAnswer } from "../http/http-endpoint.js";

const LOCAL_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i;

/** Returns the refusal of a request; undefined if it has the token and comes by a name of this machine. */
export function refusalOf(headers: IncomingHttpHeaders, token: string): EndpointAnswer | undefined {
  if (!LOCAL_HOST.test(headers.host ?? ""))
    return textAnswer(403, "forbidden: ask for it as localhost, 127.0.0.1 or [::1]");
  if (headers.origin !== undefined)
    return textAnswer(403, "forbidden: web pages may not ask, and the request has an Origin");
  const given = /^Bearer ([^\s]+)$/i.exec(headers.authorization ?? "")?.[1];
  if (given !== undefined && isSame(given, token)) return undefined;
  const why = "unauthorized: the header Authorization has to be Bearer, and the token of the debug endpoint";
  return { ...textAnswer(401, why), headers: { "www-authenticate": "Bearer" } };
}

// In a time that says nothing about where they differ, nor how long the token is.
function isSame(given: string, token: string): boolean {
  const digestOf = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digestOf(given), digestOf(token));
}
