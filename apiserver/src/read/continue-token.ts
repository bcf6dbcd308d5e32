import { goTypeOf } from "../errors/go-format.js";
import { jsonSyntaxError } from "../errors/json-syntax-error.js";
import { badRequest } from "../errors/status-error.js";
import { isObject, type JsonObject, type JsonValue } from "../json.js";

/** Where the next page of a list starts, and at which revision. */
export interface ContinueToken {
  /** A negative revision means the present one. */
  revision: number;
  /** The first key that may be on the page, below the listed prefix. */
  startKey: string;
}

const VERSION = "meta.k8s.io/v1";
const MEMBERS = {
  v: { json: "string", go: "string" },
  rv: { json: "number", go: "int64" },
  start: { json: "string", go: "string" },
};

/** Writes a token for the page after `lastKey`, a key below the listed prefix. */
export function writeContinueToken(token: { revision: number; lastKey: string }): string {
  const content = { v: VERSION, rv: token.revision, start: `/${token.lastKey}\u0000` };
  return Buffer.from(JSON.stringify(content)).toString("base64url");
}

/** Reads a token that a client sent. */
export function readContinueToken(text: string): ContinueToken {
  const content = parseToken(text);
  if (content["v"] !== VERSION) {
    throw invalidToken(`server does not recognize this encoded version ${String(content["v"] ?? "")}`);
  }
  const { rv, start } = content;
  if (typeof rv !== "number" || rv === 0)
    throw invalidToken(`incorrect encoded start resourceVersion (version ${VERSION})`);
  if (typeof start !== "string" || start === "") throw invalidToken(`encoded start key empty (version ${VERSION})`);
  return { revision: rv, startKey: start.replace(/^\//, "") };
}

function parseToken(text: string): JsonObject {
  const offset = text.search(/[^A-Za-z0-9_-]/);
  // One character of four is too little for a byte.
  const isCut = text.length % 4 === 1;
  if (offset >= 0 || isCut)
    throw invalidToken(`illegal base64 data at input byte ${offset >= 0 ? offset : text.length - 1}`);
  const decoded = Buffer.from(text, "base64url");
  const unreadable = jsonSyntaxError(decoded);
  if (unreadable !== "") throw invalidToken(unreadable);
  // null is a token without members.
  const content = (JSON.parse(decoded.toString()) as JsonValue) ?? {};
  if (!isObject(content))
    throw invalidToken(`json: cannot unmarshal ${goTypeOf(content)} into Go value of type storage.continueToken`);
  for (const [member, type] of Object.entries(MEMBERS)) {
    const value = content[member] ?? null;
    if (value === null || typeof value === type.json) continue;
    const misfit = `cannot unmarshal ${goTypeOf(value)} into Go struct field continueToken.${member} of type ${type.go}`;
    throw invalidToken(`json: ${misfit}`);
  }
  return content;
}

function invalidToken(detail: string): Error {
  return badRequest(`invalid continue token: continue key is not valid: ${detail}`);
}
