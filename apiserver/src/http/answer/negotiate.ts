import { isTrue } from "../../decode/options/query-boolean.js";
import { MEDIA_TYPES } from "../../errors/media-types.js";
import { notAcceptable, notAcceptableBuiltin, plainError, statusError } from "../../errors/status-error.js";

/** How a client wants an answer. */
export interface Representation {
  format: "json" | "yaml";
  as: "Object" | "Table" | "PartialObjectMetadata";
  /** The version of the group meta.k8s.io in which a form other than the object itself comes. */
  metaVersion: MetaVersion;
  isPretty: boolean;
}

/** A version of the forms that are not the object itself. */
export type MetaVersion = "v1" | "v1beta1";

/** What is to be represented. */
export interface NegotiationTarget {
  isCustom: boolean;
  isList: boolean;
  /** The events of a watch show single objects, though its path is that of a list. */
  isWatch: boolean;
  /** As Go calls the type of what is asked for. */
  goType: string;
}

interface Clause {
  mediaType: string;
  parameters: Map<string, string>;
}

const STREAMING = ["application/json;stream=watch", "application/vnd.kubernetes.protobuf;stream=watch"];
const FORMATS: ReadonlyMap<string, "json" | "yaml"> = new Map([
  ["", "json"],
  ["*/*", "json"],
  ["application/json", "json"],
  ["application/yaml", "yaml"],
]);
const FAILURE_FORMATS = new Map([...FORMATS, ["application/vnd.kubernetes.protobuf", "protobuf" as const]]);
const PRETTY_AGENTS = /^(curl|Wget|Mozilla)\//;

/** Chooses the first representation that the client accepts. Protobuf, which real servers offer for built-in types, is none. */
export function negotiate(
  request: { accept: string | undefined; userAgent: string | undefined; pretty: string | null },
  target: NegotiationTarget,
): Representation {
  const isPretty = request.pretty === null ? PRETTY_AGENTS.test(request.userAgent ?? "") : isTrue(request.pretty);
  const clauses = clausesOf(request.accept);
  let hasUnknownForm = false;
  for (const { mediaType, parameters } of clauses) {
    const format = mediaType === "application/*" && target.isCustom ? "json" : FORMATS.get(mediaType);
    if (format === undefined) continue;
    const form = formOf(parameters, target);
    if (form === undefined) hasUnknownForm = true;
    else return { format, as: form, metaVersion: metaVersionOf(parameters), isPretty };
  }
  if (target.isCustom || hasUnknownForm) throw notAcceptable(MEDIA_TYPES);
  throw notAcceptableBuiltin(target.isList ? [...MEDIA_TYPES, ...STREAMING] : MEDIA_TYPES);
}

/** Chooses the format of a failure, which has but one form; JSON if the client accepts nothing that there is. */
export function negotiateFailure(accept: string | undefined): "json" | "yaml" | "protobuf" {
  const plain = clausesOf(accept).filter(({ parameters }) => !parameters.has("as"));
  return plain.flatMap(({ mediaType }) => FAILURE_FORMATS.get(mediaType) ?? [])[0] ?? "json";
}

/** What a client accepts, the best first. */
function clausesOf(accept = ""): Clause[] {
  const qualityOf = ({ parameters }: Clause) => Number(parameters.get("q") ?? 1);
  return accept
    .split(",")
    .map(parseClause)
    .sort((one, other) => qualityOf(other) - qualityOf(one));
}

function parseClause(text: string): Clause {
  const [mediaType = "", ...parameters] = text.split(";").map((part) => part.trim());
  return {
    mediaType,
    parameters: new Map(parameters.map((parameter) => parameter.split("=", 2) as [string, string])),
  };
}

function metaVersionOf(parameters: Map<string, string>): MetaVersion {
  return parameters.get("v") === "v1beta1" ? "v1beta1" : "v1";
}

function formOf(parameters: Map<string, string>, target: NegotiationTarget): Representation["as"] | undefined {
  const as = parameters.get("as");
  if (as === undefined) return "Object";
  if (parameters.get("g") !== "meta.k8s.io" || !/^v1(beta1)?$/.test(parameters.get("v") ?? "")) return undefined;
  if (as === "Table") return "Table";
  if (as !== "PartialObjectMetadata" && as !== "PartialObjectMetadataList") return undefined;
  if (as === "PartialObjectMetadata" && target.isList && !target.isWatch) {
    const message = `you requested PartialObjectMetadata, but the requested object is a list (*${target.goType})`;
    throw statusError({ code: 406, reason: "NotAcceptable", message });
  }
  if (as === "PartialObjectMetadataList" && !target.isList) {
    if (target.isCustom) throw plainError("content is not a list");
    const message = `you requested PartialObjectMetadataList, but the requested object is not a list (*${target.goType})`;
    throw statusError({ code: 406, reason: "NotAcceptable", message });
  }
  return "PartialObjectMetadata";
}
