import { exactJson, parseExactJson } from "@gen-operator/schema";
import type { CollectionTag, ScalarTag } from "yaml";
import { serverTime } from "../clock.js";
import { isTrue } from "../decode/options.js";
import { MAGIC } from "../decode/protobuf.js";
import { fieldErrorText, invalidError } from "../errors/field-error.js";
import {
  MEDIA_TYPES,
  type Status,
  type StatusDetails,
  type StatusError,
  badRequest,
  notAcceptable,
  notAcceptableBuiltin,
  plainError,
  statusError,
} from "../errors/status-error.js";
import { type JsonObject, objectAt, stringAt } from "../json.js";
import { apiVersionOf } from "../object/object-meta.js";
import { delimited, integerField, textField } from "../protobuf-writer.js";
import type { ListResult } from "../read/list.js";
import { type EventWriter, bookmarkOf, eventLine } from "../read/watch.js";
import type { ServedResource } from "../registry/registry.js";
import type { StoredObject } from "../storage/store.js";
import { type PrintedType, tableOf } from "../table/table.js";
import { yamlLibrary } from "../yaml-library.js";
import type { Answer } from "./request-info.js";

const SCALE = { group: "autoscaling", kind: "Scale" };
const CONTENT_TYPES = {
  json: "application/json",
  yaml: "application/yaml",
  protobuf: "application/vnd.kubernetes.protobuf",
} as const;

/** The context in which a response is rendered. */
export interface RenderContext {
  resource: ServedResource;
  representation: Representation;
  query: URLSearchParams;
  warnings: readonly string[];
}

/** Renders an object. */
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
  return valueAnswer(context, status, isPartial ? partialMetadataOf(stored.object) : stored.exactObject);
}

/** Renders a value that is not an object of the resource, such as a Status. */
export function renderValue(context: RenderContext, status: number, value: JsonObject): Answer {
  return valueAnswer(context, status, value);
}

/** Renders a Scale, also as a Table or PartialObjectMetadata. */
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
  // Only lists of custom resources have an empty `continue` on the last page, unless they are Tables or PartialObjectMetadata.
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
  const items = list.items.map((stored) => parseExactJson(resource.itemJsonOf(stored)) as JsonObject);
  return valueAnswer(context, 200, { ...head, items });
}

/** Renders an error in the format that the client prefers. */
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
  const body = format === "yaml" ? yamlOf(value) : isPretty ? exactJson(value, 2) : `${JSON.stringify(value)}\n`;
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

/** The negotiated representation of a response. */
interface Representation {
  format: "json" | "yaml";
  as: "Object" | "Table" | "PartialObjectMetadata";
  /** The meta.k8s.io version of a Table or PartialObjectMetadata. */
  metaVersion: MetaVersion;
  isPretty: boolean;
}

/** A meta.k8s.io version. */
type MetaVersion = "v1" | "v1beta1";

/** The response to negotiate a representation for. */
interface NegotiationTarget {
  isCustom: boolean;
  isList: boolean;
  /** The events of a watch contain single objects, although its path is that of a list. */
  isWatch: boolean;
  /** The Go type of the response, for error messages. */
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

/** Returns the first representation that the client accepts. Protobuf, which kube-apiserver offers for built-in types, is not supported. */
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

/** Returns the format of an error; JSON if the client accepts no supported format. */
function negotiateFailure(accept: string | undefined): "json" | "yaml" | "protobuf" {
  const plain = clausesOf(accept).filter(({ parameters }) => !parameters.has("as"));
  return plain.flatMap(({ mediaType }) => FAILURE_FORMATS.get(mediaType) ?? [])[0] ?? "json";
}

/** Parses the Accept header, with the highest quality first. */
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

/** How much of each object the rows of a Table include. */

type IncludeObject = "None" | "Metadata" | "Object";

const INCLUDES: readonly IncludeObject[] = ["None", "Metadata", "Object"];

/** Parses the `includeObject` parameter. Throws 400 if it is invalid. */
function includeObjectOf(query: URLSearchParams): IncludeObject {
  const given = query.get("includeObject") || "Metadata";
  const known = INCLUDES.find((include) => include === given);
  if (known !== undefined) return known;
  const error = invalidError("includeObject", given, "must be 'Metadata', 'Object', 'None', or empty");
  throw badRequest(`Unable to convert to Table as requested: ${fieldErrorText(error)}`);
}

/** Returns a Table of objects as of the current time. */
function tableAnswerOf(
  type: PrintedType,
  objects: JsonObject[],
  options: { includeObject: IncludeObject; listMeta: JsonObject; withColumns: boolean },
): JsonObject {
  return tableOf(type, objects, { ...options, now: serverTime() });
}

/** Returns the PartialObjectMetadata of an object. */
function partialMetadataOf(object: JsonObject): JsonObject {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: storedMetadataOf(object) };
}

/** Converts a Table or PartialObjectMetadata to another meta.k8s.io version. Only the apiVersion differs. */
function inMetaVersion(form: JsonObject, version: MetaVersion): JsonObject {
  if (version === "v1" || form["apiVersion"] !== "meta.k8s.io/v1") return form;
  const { rows, items } = form as { rows?: { object?: JsonObject | null }[]; items?: JsonObject[] | null };
  return {
    ...form,
    apiVersion: `meta.k8s.io/${version}`,
    ...(rows && {
      rows: rows.map((row) => (row.object ? { ...row, object: inMetaVersion(row.object, version) } : row)),
    }),
    ...(items && { items: items.map((item) => inMetaVersion(item, version)) }),
  } as JsonObject;
}

const SHOWN_ONLY = "deprecated.daemonset.template.generation";

// The template generation of a DaemonSet is stored in its spec, and becomes an annotation only in the serialized DaemonSet.
function storedMetadataOf(object: JsonObject): JsonObject {
  const metadata = object["metadata"] as JsonObject;
  const annotations = objectAt(metadata, "annotations");
  if (object["kind"] !== "DaemonSet" || annotations === undefined) return metadata;
  const { [SHOWN_ONLY]: _, ...others } = annotations;
  const { annotations: __, ...rest } = metadata;
  return Object.keys(others).length === 0 ? rest : { ...rest, annotations: others };
}

/** Returns a writer of watch events with PartialObjectMetadata. */
export function partialEventWriter(resource: ServedResource, version: MetaVersion): EventWriter {
  const line = (event: string, object: JsonObject): Buffer =>
    eventLine(event, inMetaVersion(partialMetadataOf(object), version));
  return {
    write: (type, stored) => line(type, resource.read(stored).object),
    writeBookmark: (revision, options) => line("BOOKMARK", bookmarkOf(resource, revision, options)),
  };
}

/** Returns a writer of watch events with Tables of one row. Only the first Table has column definitions. */
export function tableEventWriter(
  resource: ServedResource,
  { query, version }: { query: URLSearchParams; version: MetaVersion },
): EventWriter {
  const includeObject = includeObjectOf(query);
  let withColumns = true;
  const tableLine = (event: string, objects: JsonObject[], revision: number): Buffer => {
    const listMeta = { resourceVersion: String(revision) };
    const table = tableAnswerOf(resource.type, objects, { includeObject, listMeta, withColumns });
    withColumns = false;
    return eventLine(event, inMetaVersion(table, version));
  };
  return {
    write: (type, stored) => tableLine(type, [resource.read(stored).object], stored.revision),
    writeBookmark: (revision, options) => tableLine("BOOKMARK", [bookmarkOf(resource, revision, options)], revision),
  };
}

// Strings that YAML 1.1 parses as another type. kube-apiserver writes them in double quotes, and other strings that cannot be plain in single quotes.
const OTHER_TYPES =
  /^(?:|<<|~|[yYnN]|null|Null|NULL|true|True|TRUE|false|False|FALSE|yes|Yes|YES|no|No|NO|on|On|ON|off|Off|OFF|(?=.*\d)[-+]?[\d.][\d_.:eExXobB+-]*[a-fA-F\d]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)|\d{4}-\d\d?-\d\d?(?:[Tt ].*)?)$/;
const LAYOUT = { indentSeq: false, singleQuote: true, lineWidth: 0, minContentWidth: 0 } as const;
const MERGE = "tag:yaml.org,2002:merge";
// Line breaks of YAML 1.1 and the byte order mark, which must be escaped in double quotes.
const ESCAPED = /[\u0085\u2028\u2029\ufeff]/g;

// The library parses a dot as a number without digits.
function withoutDot(tag: CollectionTag | ScalarTag): CollectionTag | ScalarTag {
  if (!("test" in tag) || tag.test?.test(".") !== true) return tag;
  return Object.assign({}, tag, { test: new RegExp(`^(?!\\.$)(?:${tag.test.source})`) });
}

/** Formats a value as YAML like kube-apiserver: with sorted keys, without aliases, and quoted for YAML 1.1. */
export function yamlOf(value: JsonObject): string {
  const { Document, stringify, visit } = yamlLibrary();
  const document = new Document(value, {
    version: "1.1",
    aliasDuplicateObjects: false,
    sortMapEntries: true,
    // A key "<<" from JSON is not a merge key.
    merge: false,
    customTags: (tags) =>
      tags.flatMap((tag) => (typeof tag === "string" ? tag : tag.tag === MERGE ? [] : withoutDot(tag))),
  });
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value !== "string") return;
      // The library chooses the kind of quotes that the string does not contain.
      if (node.value.includes("'") && stringify(node.value, LAYOUT).startsWith('"')) node.type = "QUOTE_SINGLE";
      if (OTHER_TYPES.test(node.value) || node.value.search(ESCAPED) >= 0 || node.value.includes("\t"))
        node.type = "QUOTE_DOUBLE";
    },
  });
  const text = document.toString(LAYOUT).replace(/^%YAML 1\.1\n---\n/, "");
  return foldTexts(text).replace(ESCAPED, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

const MAX_COLUMN = 80;
const KEY = `(?:"(?:[^"\\\\]|\\\\.)*"|'(?:[^']|'')*'|[^'"\\s](?:(?!: ).)*): `;
const LINE = new RegExp(`^( *(?:- )*)(${KEY})?(.*)$`);
const BLOCK = /^[|>][-+\d]*$/;

/** Folds strings in YAML as go-yaml does: at the first single space after column 80. Each string must be on one line or in a block scalar. */
function foldTexts(yaml: string): string {
  // The column of the key or dash of the current block scalar, whose lines are indented further.
  let block: number | undefined;
  const lines = yaml.split("\n").map((line) => {
    if (block !== undefined && /^ */.exec(line)![0].length > block) return line;
    const [, indent = "", key = "", text = ""] = LINE.exec(line) ?? [];
    const column = key === "" ? Math.max(0, indent.length - 2) : indent.length;
    if (line !== "") block = BLOCK.test(text) ? column : undefined;
    return folded(text, { start: indent + key, indent: " ".repeat(column + 2) });
  });
  return lines.join("\n");
}

function folded(text: string, { start, indent }: { start: string; indent: string }): string {
  let [lines, line] = ["", start];
  for (let at = 0; at < text.length; at++) {
    const isBreak = text[at] === " " && line.length > MAX_COLUMN && text[at - 1] !== " " && text[at + 1] !== " ";
    if (isBreak) [lines, line] = [`${lines}${line}\n`, indent];
    else line += text[at];
  }
  return lines + line;
}

// Encodes a Status as protobuf in the envelope of Kubernetes: Go clients prefer protobuf and receive it for errors.

// selfLink, resourceVersion, and continue.
const LIST_META = [1, 2, 3].flatMap((number) => textField(number, ""));

/** Encodes a Status as Go does, including empty strings. */
function statusProtobuf({ kind, apiVersion, ...status }: Status): Buffer {
  const typeMeta = [...textField(1, apiVersion), ...textField(2, kind)];
  const fields = [
    ...delimited(1, LIST_META),
    ...textField(2, status.status),
    ...textField(3, status.message ?? ""),
    ...textField(4, status.reason ?? ""),
    ...(status.details === undefined ? [] : delimited(5, detailsOf(status.details))),
    ...integerField(6, status.code),
  ];
  // The fields contentEncoding and contentType are empty.
  const envelope = [...delimited(1, typeMeta), ...delimited(2, fields), ...textField(3, ""), ...textField(4, "")];
  return Buffer.concat([MAGIC, ...envelope]);
}

function detailsOf(details: StatusDetails): Buffer[] {
  const causes = details.causes ?? [];
  return [
    ...textField(1, details.name ?? ""),
    ...textField(2, details.group ?? ""),
    ...textField(3, details.kind ?? ""),
    ...causes.flatMap(({ reason, message, field }) =>
      delimited(4, [...textField(1, reason ?? ""), ...textField(2, message ?? ""), ...textField(3, field ?? "")]),
    ),
    ...integerField(5, details.retryAfterSeconds ?? 0),
    ...textField(6, details.uid ?? ""),
  ];
}
