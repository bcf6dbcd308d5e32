// Answers from a moment of the past to those for whom any version will do, as an API server gives them whose cache is behind.
import type { Answer, ApiRequest, StreamAnswer } from "../http/message.js";
import type { StreamSink } from "../read/stream-sink.js";

type Serve = (request: ApiRequest) => Promise<Answer | StreamAnswer>;

interface ListBody {
  kind: string;
  apiVersion: string;
  metadata: { resourceVersion: string };
  items: object[];
}

/** Answers a list, or a watch that begins with the state, as of a revision; everything else as it is. */
export async function answerStale(
  request: ApiRequest,
  { verb, revision, serve }: { verb: string; revision: number; serve: Serve },
): Promise<Answer | StreamAnswer> {
  if (!allowsRevision(request.query, { verb, revision })) return serve(request);
  const list = await serve(listAt(request, revision));
  if (verb !== "watch" || list.kind !== "answer" || list.status !== 200) return list;
  const since = new URLSearchParams(request.query);
  since.set("resourceVersion", String(revision));
  for (const name of ["sendInitialEvents", "resourceVersionMatch"]) since.delete(name);
  const watch = await serve({ ...request, query: since });
  if (watch.kind !== "stream") return watch;
  const lines = initialLines(
    JSON.parse(String(list.body)) as ListBody,
    request.query.get("sendInitialEvents") === "true",
  );
  return {
    ...watch,
    open(sink: StreamSink) {
      sink.sendLazily(lines);
      return watch.open(sink);
    },
  };
}

// Any version will do for 0; a version that the client has seen is a lower bound.
function allowsRevision(query: URLSearchParams, { verb, revision }: { verb: string; revision: number }): boolean {
  const version = query.get("resourceVersion") ?? "";
  if (verb === "watch") return version === "0";
  if (verb !== "list" || version === "" || query.get("resourceVersionMatch") === "Exact") return false;
  return query.get("continue") === null && Number(version) <= revision;
}

function listAt(request: ApiRequest, revision: number): ApiRequest {
  const query = new URLSearchParams();
  for (const name of ["labelSelector", "fieldSelector"]) {
    const value = request.query.get(name);
    if (value !== null) query.set(name, value);
  }
  query.set("resourceVersion", String(revision));
  query.set("resourceVersionMatch", "Exact");
  return { ...request, query };
}

function initialLines({ kind, apiVersion, metadata, items }: ListBody, endsInitialEvents: boolean): Buffer[] {
  const head = { kind: kind.replace(/List$/, ""), apiVersion };
  const lines = items.map((item) => lineOf("ADDED", { ...head, ...item }));
  if (!endsInitialEvents) return lines;
  const { resourceVersion } = metadata;
  const annotations = { "k8s.io/initial-events-end": "true" };
  return [...lines, lineOf("BOOKMARK", { ...head, metadata: { resourceVersion, annotations } })];
}

function lineOf(type: string, object: object): Buffer {
  return Buffer.from(`${JSON.stringify({ type, object })}\n`);
}
