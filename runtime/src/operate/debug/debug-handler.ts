import type { Readable } from "node:stream";
import { getHeapSnapshot } from "node:v8";
import { memberOf } from "../../base/kubernetes-object.js";
import type { ObservedOperator } from "../health.js";
import { notAllowed, textAnswer, type EndpointAnswer, type EndpointHandler } from "../http/http-endpoint.js";
import { refusalOf } from "./debug-access.js";
import { stateOf } from "./debug-state.js";
import type { DebugToken } from "./debug-token.js";
import { readMemoryFacts, snapshotHeadroom, type MemoryFacts } from "./heap-snapshot.js";
import { changeLevel, jsonAnswer, showLevels, type LevelSubject } from "./log-level-paths.js";

/** What the debug endpoint shows and changes. */
export interface DebugSubject extends ObservedOperator, LevelSubject {
  /** The name of this replica, which files are named after. */
  readonly instance: string;
}

/** How the process is looked into. Tests have other ones. */
export interface Probing {
  recordCpuProfile(durationMs: number, signal: AbortSignal): Promise<string>;
  readMemoryFacts(): MemoryFacts;
  /** Nothing else of the process runs meanwhile. */
  takeHeapSnapshot(): Readable;
}

/** The methods that some path takes. */
export const DEBUG_METHODS = ["GET", "PUT"];

const MAX_SECONDS = 60;
const DEFAULT_SECONDS = 10;
const PATHS = `GET /debug/state
GET /debug/log-levels
PUT /debug/log-levels
PUT /debug/log-levels/CONTROLLER
GET /debug/cpu-profile?seconds=${DEFAULT_SECONDS}
GET /debug/heap-snapshot`;
const LEVELS = /^\/debug\/log-levels(?:\/([^/]+))?$/;

// Nobody pays for the inspector who does not use it.
const ofThisProcess: Probing = {
  recordCpuProfile: async (...args) => (await import("./cpu-profile.js")).recordCpuProfile(...args),
  readMemoryFacts,
  takeHeapSnapshot: () => getHeapSnapshot(),
};

type Route = (url: URL, gone: AbortSignal) => EndpointAnswer | Promise<EndpointAnswer>;

/** Returns what answers the paths below `/debug/`, to those who have the token. */
export function debugHandler(subject: DebugSubject, token: DebugToken, probing = ofThisProcess): EndpointHandler {
  const useAlone = createSingleUse();
  const { logger, instance } = subject;
  const paths: { readonly [path: string]: Route } = {
    "/debug/state": () => jsonAnswer(stateOf(subject)),
    "/debug/cpu-profile": ({ searchParams }, gone) => {
      const seconds = Number(searchParams.get("seconds") ?? DEFAULT_SECONDS);
      if (!(seconds >= 1 && seconds <= MAX_SECONDS))
        return textAnswer(400, `bad request: seconds has to be a number from 1 to ${MAX_SECONDS}`);
      return useAlone(async () => {
        logger.info({ seconds }, `the debug endpoint records a CPU profile for ${seconds} s`);
        const body = await probing.recordCpuProfile(seconds * 1000, gone);
        return { status: 200, body, contentType: "application/json", headers: fileName(instance, "cpuprofile") };
      });
    },
    "/debug/heap-snapshot": () =>
      useAlone(async () => {
        const headroom = snapshotHeadroom(probing.readMemoryFacts());
        if (headroom.missingBytes > 0) return noRoom(headroom);
        const what =
          "the debug endpoint takes a heap snapshot: the process stands still, and all it holds is in the file";
        logger.warn({}, what);
        const body = probing.takeHeapSnapshot();
        return { status: 200, body, contentType: "application/json", headers: fileName(instance, "heapsnapshot") };
      }),
  };
  return async (url, request, gone) => {
    const refusal = refusalOf(request.headers, await token.read());
    if (refusal !== undefined) return refusal;
    const [isOfLevels, controller] = LEVELS.exec(url.pathname) ?? [];
    if (isOfLevels !== undefined) {
      if (request.method === "PUT") return changeLevel(subject, request, controller && decoded(controller));
      return controller === undefined ? showLevels(subject) : notAllowed(["PUT"]);
    }
    const route = memberOf(paths, url.pathname);
    if (route === undefined) return textAnswer(404, `not found; there are\n${PATHS}`);
    return request.method === "GET" ? route(url, gone) : notAllowed(["GET"]);
  };
}

/** Returns what lets one at a time look into the process. */
function createSingleUse(): (look: () => Promise<EndpointAnswer>) => Promise<EndpointAnswer> {
  let isInUse = false;
  const free = () => void (isInUse = false);
  return async (look) => {
    if (isInUse) return textAnswer(409, "conflict: another profile or snapshot is under way");
    isInUse = true;
    try {
      const answer = await look();
      // A stream is under way until its last byte is sent, or the client is gone.
      if (typeof answer.body === "string") free();
      else answer.body.once("close", free);
      return answer;
    } catch (error) {
      free();
      throw error;
    }
  };
}

function noRoom({ neededBytes, availableBytes, missingBytes }: ReturnType<typeof snapshotHeadroom>): EndpointAnswer {
  const [needed, available, missing] = [neededBytes, availableBytes, missingBytes].map(
    (bytes) => `${Math.ceil(bytes / 2 ** 20)} MiB`,
  );
  const what = `a heap snapshot may take ${needed}, and the process has ${available} left: ${missing} are missing`;
  return textAnswer(503, `no room: ${what}; give it more memory, or ask a replica that has more`);
}

function fileName(instance: string, ending: string): { readonly [header: string]: string } {
  const time = new Date().toISOString().replace(/[:.]/g, "-");
  const name = `${instance}-${time}.${ending}`.replace(/[^\w.-]/g, "_");
  return { "content-disposition": `attachment; filename="${name}"` };
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
