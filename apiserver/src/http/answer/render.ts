import { statusProtobuf } from "./status-protobuf.js";
import { yamlOf } from "./yaml.js";
import type { Status, StatusError } from "../../errors/status-error.js";
import { objectAt, stringAt, type JsonObject } from "../../json.js";
import { apiVersionOf } from "../../object/object-key.js";
import type { ListResult } from "../../read/list.js";
import type { ServedResource } from "../../registry/served-resource.js";
import type { StoredObject } from "../../storage/stored-object.js";
import type { Answer } from "../message.js";
import { negotiateFailure, type Representation } from "./negotiate.js";
import { includeObjectOf, inMetaVersion, partialMetadataOf, tableAnswerOf } from "./other-forms.js";

const SCALE = { group: "autoscaling", kind: "Scale" };
const CONTENT_TYPES = {
  json: "application/json",
  yaml: "application/yaml",
  protobuf: "application/vnd.kubernetes.protobuf",
} as const;

/** What a resource's answers depend on besides their content. */
export interface RenderContext {
  resource: ServedResource;
  representation: Representation;
  query: URLSearchParams;
  warnings: readonly string[];
}

/** Renders one object. */
export function renderObject(context: RenderContext, status: number, stored: StoredObject): Answer {
  const { resource, representation } = context;
  if (isPlainJson(representation)) return jsonAnswer(context, status, stored.json);
  if (representation.as === "Table") {
    const metadata = { resourceVersion: String(stored.revision) };
    const includeObject = includeObjectOf(context.query);
    const table = tableAnswerOf(resource.type, [stored.object], {
      includeObject,
      listMeta: metadata,
      withColumns: true,
    });
    return valueAnswer(context, status, table);
  }
  const isPartial = representation.as === "PartialObjectMetadata";
  return valueAnswer(context, status, isPartial ? partialMetadataOf(stored.object) : stored.object);
}

/** Renders a value that is no object of the resource, such as a Scale or a Status. */
export function renderValue(context: RenderContext, status: number, value: JsonObject): Answer {
  return valueAnswer(context, status, value);
}

/** Renders a Scale, in the forms that objects come in. */
export function renderScale(context: RenderContext, status: number, scale: JsonObject): Answer {
  const { as } = context.representation;
  if (as === "PartialObjectMetadata") return valueAnswer(context, status, partialMetadataOf(scale));
  if (as === "Object") return valueAnswer(context, status, scale);
  const listMeta = { resourceVersion: stringAt(objectAt(scale, "metadata"), "resourceVersion") ?? "" };
  const table = { includeObject: includeObjectOf(context.query), listMeta, withColumns: true };
  return valueAnswer(context, status, tableAnswerOf(SCALE, [scale], table));
}

/** Renders a page of a list. */
export function renderList(context: RenderContext, list: ListResult): Answer {
  const { resource, representation } = context;
  const { type } = resource;
  // Only custom resources in full show that there is no further page.
  const isCustom = type.custom !== undefined && representation.as === "Object";
  const metadata = listMetaOf(list, { showsLastPage: isCustom });
  const head = { kind: type.listKind, apiVersion: apiVersionOf(type), metadata };
  if (isPlainJson(representation)) {
    const items = list.items.map((stored) => resource.itemJsonOf(stored)).join(",");
    return jsonAnswer(context, 200, `${JSON.stringify(head).slice(0, -1)},"items":[${items}]}`);
  }
  const objects = list.items.map((stored) => resource.read(stored).object);
  if (representation.as === "Table") {
    const includeObject = includeObjectOf(context.query);
    return valueAnswer(
      context,
      200,
      tableAnswerOf(type, objects, { includeObject, listMeta: metadata, withColumns: true }),
    );
  }
  if (representation.as === "PartialObjectMetadata") {
    const kind = "PartialObjectMetadataList";
    const items = objects.length === 0 ? null : objects.map(partialMetadataOf);
    return valueAnswer(context, 200, { kind, apiVersion: "meta.k8s.io/v1", metadata, items });
  }
  const items = list.items.map((stored) => JSON.parse(resource.itemJsonOf(stored)) as JsonObject);
  return valueAnswer(context, 200, { ...head, items });
}

/** Renders a failure in the format that the client likes best. */
export function renderFailure(
  error: StatusError,
  options: { isPretty: boolean; warnings?: readonly string[]; accept?: string | undefined },
): Answer {
  const { status } = error;
  const format = negotiateFailure(options.accept);
  const retryAfter = status.details?.retryAfterSeconds;
  return {
    kind: "answer",
    status: status.code,
    contentType: CONTENT_TYPES[format],
    body: statusBody(status, format, options.isPretty),
    ...(retryAfter === undefined ? {} : { headers: { "Retry-After": String(retryAfter) } }),
    ...(options.warnings === undefined ? {} : { warnings: options.warnings }),
  };
}

function statusBody(status: Status, format: keyof typeof CONTENT_TYPES, isPretty: boolean): string | Buffer {
  if (format === "yaml") return yamlOf(JSON.parse(JSON.stringify(status)) as JsonObject);
  if (format === "protobuf") return statusProtobuf(status);
  return isPretty ? JSON.stringify(status, null, 2) : `${JSON.stringify(status)}\n`;
}

function isPlainJson({ format, as, isPretty }: Representation): boolean {
  return format === "json" && as === "Object" && !isPretty;
}

function jsonAnswer({ warnings }: RenderContext, status: number, json: string): Answer {
  return { kind: "answer", status, contentType: CONTENT_TYPES.json, body: `${json}\n`, warnings };
}

function valueAnswer({ representation, warnings }: RenderContext, status: number, given: JsonObject): Answer {
  const { format, isPretty, metaVersion } = representation;
  const value = inMetaVersion(given, metaVersion);
  const body =
    format === "yaml" ? yamlOf(value) : isPretty ? JSON.stringify(value, null, 2) : `${JSON.stringify(value)}\n`;
  return { kind: "answer", status, contentType: CONTENT_TYPES[format], body, warnings };
}

function listMetaOf(list: ListResult, { showsLastPage }: { showsLastPage: boolean }): JsonObject {
  const { revision, continueToken, remainingItemCount } = list;
  return {
    resourceVersion: String(revision),
    ...(continueToken === "" && !showsLastPage ? {} : { continue: continueToken }),
    ...(remainingItemCount === undefined ? {} : { remainingItemCount }),
  };
}
