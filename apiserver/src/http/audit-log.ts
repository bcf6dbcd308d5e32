import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { type WriteStream, createWriteStream } from "node:fs";
import { machineTime } from "../clock.js";
import { type UserInfo, userObject } from "../identity/user.js";
import type { JsonObject } from "../json.js";
import type { Authorized } from "./endpoint.js";
import { type Answer, type ApiRequest, type StreamAnswer, verbOf } from "./request-info.js";

/** The outcome of a request. */
export interface Audited {
  readonly received: Date;
  /** Undefined if the request was not authorized: its credentials were invalid, or a fault occurred before. */
  readonly authorized: Authorized | undefined;
  readonly answer: Answer | StreamAnswer;
}

/**
 * Writes an audit Event (audit.k8s.io/v1) of level Metadata as a JSON line for each request that was answered.
 *
 * https://kubernetes.io/docs/tasks/debug/debug-cluster/audit/
 */
export class AuditLog {
  readonly #stream: WriteStream;

  private constructor(stream: WriteStream) {
    this.#stream = stream;
  }

  /** Opens a file for appending. Throws the system error if that fails. */
  static async open(file: string): Promise<AuditLog> {
    const stream = createWriteStream(file, { flags: "a", mode: 0o600 });
    await once(stream, "open");
    // A full disk must not crash the server.
    stream.on("error", () => undefined);
    return new AuditLog(stream);
  }

  write(request: ApiRequest, audited: Audited): void {
    this.#stream.write(`${JSON.stringify(eventOf(request, audited))}\n`);
  }

  async close(): Promise<void> {
    await new Promise<void>((resolve) => this.#stream.end(() => resolve()));
  }
}

function eventOf(request: ApiRequest, { received, authorized, answer }: Audited): JsonObject {
  const { path, query, headers, target, method } = request;
  const text = query.toString();
  return {
    kind: "Event",
    apiVersion: "audit.k8s.io/v1",
    level: "Metadata",
    auditID: randomUUID(),
    stage: answer.kind === "stream" ? "ResponseStarted" : "ResponseComplete",
    requestURI: text === "" ? path : `${path}?${text}`,
    verb: target === undefined ? method.toLowerCase() : verbOf(request),
    user: authorized === undefined ? {} : userObject(authorized.sender),
    ...impersonatedUser(authorized),
    sourceIPs: ["127.0.0.1"],
    ...(headers["user-agent"] === undefined ? {} : { userAgent: headers["user-agent"] }),
    ...(target === undefined ? {} : { objectRef: objectRefOf(target) }),
    responseStatus: { metadata: {}, code: answer.kind === "answer" ? answer.status : 200 },
    requestReceivedTimestamp: timeText(received),
    stageTimestamp: timeText(machineTime()),
    ...(authorized === undefined
      ? {}
      : { annotations: { ...annotationsOf(authorized), ...Object.fromEntries(request.auditAnnotations) } }),
  };
}

function impersonatedUser(authorized: Authorized | undefined): JsonObject {
  const user: UserInfo | undefined = authorized?.user;
  return user === undefined || user === authorized?.sender ? {} : { impersonatedUser: userObject(user) };
}

function objectRefOf({
  group,
  version,
  plural,
  namespace,
  name,
  subresource,
}: NonNullable<ApiRequest["target"]>): JsonObject {
  return {
    resource: plural,
    ...(namespace === undefined ? {} : { namespace }),
    ...(name === undefined ? {} : { name }),
    ...(group === "" ? {} : { apiGroup: group }),
    apiVersion: version,
    ...(subresource === undefined ? {} : { subresource }),
  };
}

function annotationsOf({ decision }: Authorized): JsonObject {
  return {
    "authorization.k8s.io/decision": decision.allowed ? "allow" : "forbid",
    "authorization.k8s.io/reason": decision.reason ?? "",
  };
}

// Kubernetes formats these timestamps with microseconds.
function timeText(time: Date): string {
  return time.toISOString().replace("Z", "000Z");
}
