import { createHash } from "node:crypto";
import type { ServedType } from "../builtin/served-type.js";
import { MEDIA_TYPES, notAcceptable } from "../errors/status-error.js";
import type { JsonObject } from "../json.js";
import {
  AGGREGATED_TYPE,
  type Group,
  aggregatedDiscovery,
  coreVersions,
  groupDescription,
  groupList,
  groupsOf,
  resourceList,
  versionInfo,
} from "./groups.js";
import { openApiDocument, openApiIndex } from "./openapi.js";
import { swaggerDocument, swaggerProtobuf } from "./swagger.js";

const JSON_TYPES: ReadonlySet<string> = new Set(["application/json", "application/*", "*/*"]);
const PROTOBUF = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/** A request that may be for discovery. */
export interface DiscoveryRequest {
  /** The path, with or without its query. */
  path: string;
  accept: string;
}

/** The response to a discovery request. */
export interface DiscoveryAnswer {
  status: number;
  contentType: string;
  headers?: Record<string, string>;
  body: string | Buffer;
}

/** Handles a request for discovery, the version, or OpenAPI; undefined if the path is none of these or is not served. */
export function discoveryAnswer(request: DiscoveryRequest, types: ServedType[]): DiscoveryAnswer | undefined {
  const [path = "", query = ""] = request.path.split("?", 2);
  const [root, ...parts] = path.split("/").filter((part) => part !== "");
  const groups = () => groupsOf(types);
  switch (root) {
    case "version":
      return parts.length === 0 ? json(versionInfo()) : undefined;
    case "api":
      return coreAnswer(parts, request.accept, groups());
    case "apis":
      return groupAnswer(parts, request.accept, groups());
    case "openapi":
      if (parts[0] === "v2" && parts.length === 1) return swaggerAnswer(request.accept, groups());
      return parts[0] === "v3" ? openApiAnswer(parts.slice(1).join("/"), query, groups()) : undefined;
    default:
      return undefined;
  }
}

function coreAnswer(parts: string[], accept: string, groups: Group[]): DiscoveryAnswer | undefined {
  const core = groups.filter(({ name }) => name === "");
  if (parts.length === 0) return negotiated({ accept, legacy: coreVersions(), groups: core });
  return parts.length === 1 ? resourcesAnswer(core[0], parts[0], accept) : undefined;
}

function groupAnswer(parts: string[], accept: string, groups: Group[]): DiscoveryAnswer | undefined {
  const named = groups.filter(({ name }) => name !== "");
  if (parts.length === 0) return negotiated({ accept, legacy: groupList(named), groups: named });
  const group = named.find(({ name }) => name === parts[0]);
  if (group === undefined || parts.length > 2) return undefined;
  return parts.length === 1 ? plain(groupDescription(group), accept) : resourcesAnswer(group, parts[1], accept);
}

function resourcesAnswer(
  group: Group | undefined,
  version: string | undefined,
  accept: string,
): DiscoveryAnswer | undefined {
  const groupVersion = group?.versions.find((one) => one.version === version);
  return groupVersion === undefined ? undefined : plain(resourceList(groupVersion), accept);
}

// A document with a single form is not acceptable if the client accepts only other forms.
function plain(value: JsonObject, accept: string): DiscoveryAnswer {
  if (accept !== "" && accept.split(",").every((clause) => /;\s*as=/.test(clause))) throw notAcceptable(MEDIA_TYPES);
  return json(value);
}

interface Forms {
  accept: string;
  legacy: JsonObject;
  groups: Group[];
}

// The first acceptable clause of the Accept header is used; v2beta1 is no longer supported.
function negotiated({ accept, legacy, groups }: Forms): DiscoveryAnswer {
  const clauses = accept === "" ? ["*/*"] : accept.split(",").map((clause) => clause.replace(/\s/g, ""));
  for (const clause of clauses) {
    const [mediaType, ...given] = clause.split(";");
    if (mediaType !== "application/json" && mediaType !== "*/*") continue;
    const parameters = new Map(given.map((parameter) => parameter.split("=", 2) as [string, string]));
    if (!parameters.has("as")) return json(legacy);
    if (parameters.get("as") === "APIGroupDiscoveryList" && parameters.get("v") === "v2") return aggregated(groups);
  }
  throw notAcceptable(MEDIA_TYPES);
}

function aggregated(groups: Group[]): DiscoveryAnswer {
  const body = `${JSON.stringify(aggregatedDiscovery(groups))}\n`;
  const tag = createHash("sha512").update(body).digest("hex").toUpperCase();
  const headers = { ETag: `"${tag}"`, Vary: "Accept", "Cache-Control": "public" };
  return { status: 200, contentType: AGGREGATED_TYPE, headers, body };
}

function openApiAnswer(path: string, query: string, groups: Group[]): DiscoveryAnswer | undefined {
  // kube-apiserver sends the index as text/plain.
  if (path === "") {
    return { status: 200, contentType: "text/plain; charset=utf-8", body: JSON.stringify(openApiIndex(groups)) };
  }
  const document = openApiDocument(path, groups);
  if (document === undefined) return undefined;
  const { body, hash } = document;
  const asked = new URLSearchParams(query).get("hash");
  if (asked !== null && asked !== hash) {
    const headers = { Location: `/openapi/v3/${path}?hash=${hash}` };
    return { status: 301, contentType: "text/plain; charset=utf-8", headers, body: "" };
  }
  const caching = asked === null ? {} : { "Cache-Control": "public, immutable" };
  return { status: 200, contentType: "application/json", headers: { ETag: `"${hash}"`, ...caching }, body };
}

// The first acceptable clause of the Accept header is used. Clients write the media type of the protobuf messages with "@", servers respond with a
// dot.
function swaggerAnswer(accept: string, groups: Group[]): DiscoveryAnswer {
  const clauses = accept === "" ? ["*/*"] : accept.split(",").map((clause) => clause.replace(/\s|;.*$/g, ""));
  const met = clauses.find((clause) => JSON_TYPES.has(clause) || clause.replace("@", ".") === PROTOBUF);
  if (met === undefined) throw notAcceptable(["application/json"]);
  const document = swaggerDocument(groups);
  if (JSON_TYPES.has(met)) return { status: 200, contentType: "application/json", body: JSON.stringify(document) };
  return { status: 200, contentType: PROTOBUF, body: swaggerProtobuf(document) };
}

function json(value: JsonObject): DiscoveryAnswer {
  return { status: 200, contentType: "application/json", body: `${JSON.stringify(value)}\n` };
}
