// The levels of the log, as the debug endpoint shows and changes them.
import type { IncomingMessage } from "node:http";
import { objectIn } from "../../base/kubernetes-object.js";
import type { Logger } from "../../base/logger.js";
import { textAnswer, type EndpointAnswer } from "../http/http-endpoint.js";
import { LOG_LEVELS, type LogLevels } from "../settings/log-levels.js";

/** What the levels of an operator are changed with. */
export interface LevelSubject {
  readonly levels: LogLevels;
  readonly logger: Logger;
  /** The names of the controllers. */
  readonly names: readonly string[];
}

// A level is shorter.
const MAX_BODY_BYTES = 1_024;

/** Shows the levels of the operator, and of the controllers that have one of their own. */
export function showLevels({ levels }: LevelSubject): EndpointAnswer {
  const { operator, controllers } = levels;
  return jsonAnswer({ operator, controllers: Object.fromEntries(controllers) });
}

/** Sets the level of a controller, of the operator if none is named, to that in the body of a request. */
export async function changeLevel(
  subject: LevelSubject,
  request: IncomingMessage,
  controller: string | undefined,
): Promise<EndpointAnswer> {
  const { levels, logger, names } = subject;
  if (controller !== undefined && !names.includes(controller))
    return textAnswer(404, `not found: there is no controller "${controller}", only ${names.join(", ")}`);
  const text = await readBody(request);
  if (text === undefined) return textAnswer(413, `content too large: the body has more than ${MAX_BODY_BYTES} bytes`);
  const level = LOG_LEVELS.find((each) => each === objectIn<{ readonly level: unknown }>(text)?.level);
  if (level === undefined)
    return textAnswer(400, `bad request: the body has to be {"level":"debug"}, with one of ${LOG_LEVELS.join(", ")}`);
  if (levels.isWritten?.(level) === false)
    return textAnswer(409, `conflict: the logger of this operator writes no ${level} lines; give it one that does`);
  const whose = controller === undefined ? "the operator" : `controller "${controller}"`;
  logger.info({ controller, logLevel: level }, `the debug endpoint sets the log level of ${whose} to ${level}`);
  if (controller === undefined) levels.operator = level;
  else levels.controllers.set(controller, level);
  return showLevels(subject);
}

/** Answers with JSON. */
export function jsonAnswer(value: unknown): EndpointAnswer {
  return { status: 200, body: `${JSON.stringify(value, undefined, 2)}\n`, contentType: "application/json" };
}

async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  // What is too long is read to its end, so that the client gets to read the answer.
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size <= MAX_BODY_BYTES) parts.push(part);
  }
  return size > MAX_BODY_BYTES ? undefined : Buffer.concat(parts).toString("utf8");
}
