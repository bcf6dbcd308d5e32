import { type ResourceRequest, readObject, writePatch, writeUpdate } from "../handlers.js";
import type { Answer } from "../request-info.js";
import { bind } from "./binding.js";
import { readLog, refuseStream } from "./containers.js";
import { evict } from "./eviction.js";
import { refuseProxy } from "./proxy.js";
import { answerScale } from "./scale.js";
import { createToken } from "./token.js";

/** Handles requests for a subresource. */
export interface SubresourceHandler {
  /** Whether the `timeout` parameter is ignored. */
  readonly isLongRunning?: boolean;
  /** Handles a request whose verb has been checked. */
  readonly answer: (on: ResourceRequest) => Promise<Answer> | Answer;
}

/** Reads or writes the object itself. */
const OF_OBJECT: SubresourceHandler = {
  answer(on) {
    if (on.request.method === "GET") return readObject(on);
    return on.request.method === "PATCH" ? writePatch(on) : writeUpdate(on);
  },
};

/** The implemented subresources by name. Each kind declares which of them it has. */
export const SUBRESOURCES: ReadonlyMap<string, SubresourceHandler> = new Map<string, SubresourceHandler>([
  ["status", OF_OBJECT],
  ["finalize", OF_OBJECT],
  ["approval", OF_OBJECT],
  ["resize", OF_OBJECT],
  ["ephemeralcontainers", OF_OBJECT],
  ["scale", { answer: answerScale }],
  ["token", { answer: createToken }],
  ["binding", { answer: bind }],
  ["eviction", { answer: evict }],
  ["log", { answer: readLog, isLongRunning: true }],
  ["exec", { answer: refuseStream, isLongRunning: true }],
  ["attach", { answer: refuseStream, isLongRunning: true }],
  ["portforward", { answer: refuseStream, isLongRunning: true }],
  ["proxy", { answer: refuseProxy, isLongRunning: true }],
]);
