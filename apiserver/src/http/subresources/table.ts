import { type ResourceRequest, readObject, writePatch, writeUpdate } from "../handlers.js";
import type { Answer } from "../request-info.js";
import { bind } from "./binding.js";
import { readLog, refuseStream } from "./containers.js";
import { evict } from "./eviction.js";
import { refuseProxy } from "./proxy.js";
import { answerScale } from "./scale.js";
import { createToken } from "./token.js";

/** What is done at a path below an object. */
export interface SubresourceHandler {
  /** Whether requests take as long as they take, so that no timeout is looked at. */
  readonly isLongRunning?: boolean;
  /** Answers a request with a verb that the subresource has. */
  readonly answer: (on: ResourceRequest) => Promise<Answer> | Answer;
}

/** Reads or changes a part of the object. */
const OF_OBJECT: SubresourceHandler = {
  answer(on) {
    if (on.request.method === "GET") return readObject(on);
    return on.request.method === "PATCH" ? writePatch(on) : writeUpdate(on);
  },
};

/** The subresources that this server has, by name; kinds declare which of them are theirs. */
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
