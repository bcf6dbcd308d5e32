// The debug endpoint, similar to pprof in Go operators: authorization, the state of all primaries, log levels, CPU profiles, and heap snapshots.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { freemem, tmpdir, totalmem } from "node:os";
import { dirname, join } from "node:path";
import type { Readable } from "node:stream";
import { getHeapSnapshot, getHeapStatistics } from "node:v8";
import { memberOf, objectIn } from "../base/kubernetes-object.js";
import { LOG_LEVELS, type LogLevels, type Logger, messageOf } from "../base/logger.js";
import { sleep } from "../base/wait.js";
import type { ObservedOperator } from "./health.js";
import { type EndpointAnswer, type EndpointHandler, notAllowed, textAnswer } from "./http-endpoint.js";

/** What the debug endpoint reads and changes of an operator. */
export interface DebugSubject extends ObservedOperator, LevelSubject {
  /** The name of this replica, used in the names of downloaded files. */
  readonly instance: string;
}

/** Profiling of the process; tests replace it. */
export interface Probing {
  recordCpuProfile(durationMs: number, signal: AbortSignal): Promise<string>;
  readMemoryFacts(): MemoryFacts;
  /** Blocks the process until the snapshot is taken. */
  takeHeapSnapshot(): Readable;
}

/** All methods that any path supports. */
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

const ofThisProcess: Probing = {
  recordCpuProfile,
  readMemoryFacts,
  takeHeapSnapshot: () => getHeapSnapshot(),
};

type Route = (url: URL, gone: AbortSignal) => EndpointAnswer | Promise<EndpointAnswer>;

/** Returns the handler of the paths below `/debug/`. Every request must have the bearer token. */
export function debugHandler(subject: DebugSubject, token: DebugToken, probing = ofThisProcess): EndpointHandler {
  const useAlone = createSingleUse();
  const { logger, instance } = subject;
  const paths: { readonly [path: string]: Route } = {
    "/debug/state": () => jsonAnswer(debugStateOf(subject)),
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
          "the debug endpoint is taking a heap snapshot: the process is paused, and the file contains everything that it holds, which may include Secrets";
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

/** Records a CPU profile for Chrome DevTools until the duration has passed or the signal is aborted. */
export async function recordCpuProfile(durationMs: number, signal: AbortSignal): Promise<string> {
  // Load the inspector lazily to save memory.
  const { Session } = await import("node:inspector/promises");
  const session = new Session();
  session.connect();
  try {
    await session.post("Profiler.enable");
    await session.post("Profiler.start");
    await sleep(durationMs, signal);
    const { profile } = await session.post("Profiler.stop");
    return JSON.stringify(profile);
  } finally {
    // Disconnecting also stops the profiler.
    session.disconnect();
  }
}

/** Limits profiles and snapshots to one at a time. */
function createSingleUse(): (look: () => Promise<EndpointAnswer>) => Promise<EndpointAnswer> {
  let isInUse = false;
  const free = () => void (isInUse = false);
  return async (look) => {
    if (isInUse) return textAnswer(409, "conflict: another profile or snapshot is under way");
    isInUse = true;
    try {
      const answer = await look();
      // A stream stays in progress until its last byte is sent or the client disconnects.
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
  return textAnswer(503, `insufficient memory: ${what}; raise the memory limit, or use a replica with more memory`);
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

// A request must have the token and a local host name. A web page in a browser has neither: its requests have an Origin header or, after DNS
// rebinding, the host name of the attacker.

const LOCAL_HOST = /^(localhost|127\.0\.0\.1|\[::1\])(:\d{1,5})?$/i;

/** Returns the response to an unauthorized request; undefined if the request is authorized. */
export function refusalOf(headers: IncomingHttpHeaders, token: string): EndpointAnswer | undefined {
  if (!LOCAL_HOST.test(headers.host ?? ""))
    return textAnswer(403, "forbidden: ask for it as localhost, 127.0.0.1 or [::1]");
  if (headers.origin !== undefined)
    return textAnswer(403, "forbidden: requests from web pages (with an Origin header) are not allowed");
  const given = /^Bearer ([^\s]+)$/i.exec(headers.authorization ?? "")?.[1];
  if (given !== undefined && isSameToken(given, token)) return undefined;
  const why = "unauthorized: the header Authorization has to be Bearer, and the token of the debug endpoint";
  return { ...textAnswer(401, why), headers: { "www-authenticate": "Bearer" } };
}

// Hashing makes the comparison constant-time for any length.
function isSameToken(given: string, token: string): boolean {
  const digestOf = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(digestOf(given), digestOf(token));
}

/** The token of the debug endpoint. */
export interface DebugToken {
  /** Creates or checks the token. Throws if that fails. */
  open(): Promise<void>;
  /** Returns the token. Throws if it cannot be read. */
  read(): Promise<string>;
  close(): Promise<void>;
}

const MIN_TOKEN_LENGTH = 16;
// Bearer token syntax (RFC 6750, b64token).
const BEARER_TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/** Returns the token in `file`, or a random token if `file` is undefined. */
export function createDebugToken(file: string | undefined, logger: Logger): DebugToken {
  return file === undefined ? new RandomToken(logger) : new FileToken(file);
}

/** A token in a file of the user. It is read for each request, because a mounted Secret may be updated. */
class FileToken implements DebugToken {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  async open(): Promise<void> {
    await this.read();
  }

  async read(): Promise<string> {
    const token = await readFile(this.#file, "utf8").then(
      (text) => text.trim(),
      (error: unknown) => {
        throw new Error(`the token of the debug endpoint (debugTokenFile) cannot be read: ${messageOf(error)}`);
      },
    );
    if (token.length >= MIN_TOKEN_LENGTH && BEARER_TOKEN.test(token)) return token;
    throw new Error(
      `the token of the debug endpoint in ${this.#file} (debugTokenFile) has to be ${MIN_TOKEN_LENGTH} characters at least, of A-Z a-z 0-9 - . _ ~ + /`,
    );
  }

  async close(): Promise<void> {}
}

/**
 * A random token, created at the start and stored in a temporary file. The log contains the path of the file, not the token, which would leak to
 * every reader of the log.
 */
class RandomToken implements DebugToken {
  readonly #logger: Logger;
  #made: { readonly token: string; readonly file: string } | undefined;

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  async open(): Promise<void> {
    if (this.#made !== undefined) return;
    const token = randomBytes(32).toString("base64url");
    try {
      // mkdtemp creates a directory that only this user can access, under a name that cannot be predicted.
      const file = join(await mkdtemp(join(tmpdir(), "gen-operator-debug-")), "token");
      await writeFile(file, `${token}\n`, { mode: 0o600, flag: "wx" });
      this.#made = { token, file };
    } catch (error) {
      const way = "make that folder writable, or state debugTokenFile";
      throw new Error(`the token of the debug endpoint cannot be written to ${tmpdir()}: ${messageOf(error)}; ${way}`);
    }
    const { file } = this.#made;
    this.#logger.info({ file }, `the token of the debug endpoint is in ${file}`);
  }

  async read(): Promise<string> {
    if (this.#made === undefined) throw new Error("the debug endpoint has no token, as it is not open");
    return this.#made.token;
  }

  async close(): Promise<void> {
    const file = this.#made?.file;
    this.#made = undefined;
    if (file !== undefined) await rm(dirname(file), { recursive: true, force: true });
  }
}

// GET /debug/state: why each primary waits. The response contains no objects, and error messages about Secrets contain no values.

function debugStateOf(operator: ObservedOperator) {
  const now = performance.now();
  const { status, controllers, leadership } = operator.health();
  const shown = operator.controllers().map((each) => {
    const { name } = each.definition;
    return [name, { ...controllers[name], ...each.activity(), ...each.details() }] as const;
  });
  return {
    ...{ time: new Date().toISOString(), status },
    ...(leadership !== undefined && { leadership }),
    suspects: operator.suspects?.() ?? [],
    controllers: Object.fromEntries(shown),
    // Omitted before the first event.
    watches: operator.informers().map(({ receivedAt, ...watch }) => ({
      ...watch,
      ...(receivedAt !== undefined && { lastEventAgeMs: Math.max(0, Math.round(now - receivedAt)) }),
    })),
  };
}

// GET and PUT /debug/log-levels.

/** What the log-level paths read and change of an operator. */
interface LevelSubject {
  readonly levels: LogLevels;
  readonly logger: Logger;
  /** Names of the controllers. */
  readonly names: readonly string[];
}

// More than any valid body.
const MAX_BODY_BYTES = 1_024;

/** Returns the log level of the operator and the overrides of controllers. */
function showLevels({ levels }: LevelSubject): EndpointAnswer {
  const { operator, controllers } = levels;
  return jsonAnswer({ operator, controllers: Object.fromEntries(controllers) });
}

/** Sets the log level of a controller, or of the operator, to the one in the request body. */
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

function jsonAnswer(value: unknown): EndpointAnswer {
  return { status: 200, body: `${JSON.stringify(value, undefined, 2)}\n`, contentType: "application/json" };
}

async function readBody(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  // Drain an oversized body so that the client reads the response.
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size <= MAX_BODY_BYTES) parts.push(part);
  }
  return size > MAX_BODY_BYTES ? undefined : Buffer.concat(parts).toString("utf8");
}

// Taking a heap snapshot needs memory outside the heap.

/** Memory usage and limit of the process, and free memory of the machine. */
interface MemoryFacts {
  readonly usedHeapBytes: number;
  /** Resident set size. */
  readonly residentBytes: number;
  /** Memory limit of the process (cgroup); absent if unlimited. */
  readonly limitBytes?: number | undefined;
  /** Free memory of the machine. */
  readonly freeBytes: number;
}

// Measured with Node.js 20, as a factor of the used heap: 4 for an operator, 4 for long strings, 10 for small objects, 15 for the smallest. V8's heap
// limit (heap_size_limit) was never the limiting factor.
const SNAPSHOT_GROWTH = 8;

/** Reads the memory usage of this process. */
export function readMemoryFacts(): MemoryFacts {
  const limitBytes = process.constrainedMemory();
  return {
    usedHeapBytes: getHeapStatistics().used_heap_size,
    residentBytes: process.memoryUsage.rss(),
    // constrainedMemory() returns 0, or more than the physical memory, if there is no limit.
    ...(limitBytes > 0 && limitBytes < totalmem() && { limitBytes }),
    freeBytes: freemem(),
  };
}

/** Compares the memory that a heap snapshot may need with the available memory. `missingBytes` is 0 if it suffices. */
export function snapshotHeadroom({ usedHeapBytes, residentBytes, limitBytes = Infinity, freeBytes }: MemoryFacts) {
  const neededBytes = usedHeapBytes * SNAPSHOT_GROWTH;
  const availableBytes = Math.max(0, Math.min(limitBytes - residentBytes, freeBytes));
  return { neededBytes, availableBytes, missingBytes: Math.max(0, neededBytes - availableBytes) };
}
