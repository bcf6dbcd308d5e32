import { serverTime } from "../../clock.js";
/** The forms of an object that are not the object: its metadata alone, or a row of a table. */
import { invalidError, fieldErrorText } from "../../errors/field-error.js";
import { badRequest } from "../../errors/status-error.js";
import { objectAt, type JsonObject } from "../../json.js";
import { bookmarkOf, eventLine } from "../../read/event-writer.js";
import type { EventWriter } from "../../read/watch.js";
import type { ServedResource } from "../../registry/served-resource.js";
import type { MetaVersion } from "./negotiate.js";
import { tableOf, type PrintedType } from "../../table/table.js";

type IncludeObject = "None" | "Metadata" | "Object";

const INCLUDES: readonly IncludeObject[] = ["None", "Metadata", "Object"];

/** Parses how much of each object a table is to carry. */
export function includeObjectOf(query: URLSearchParams): IncludeObject {
  const given = query.get("includeObject") || "Metadata";
  const known = INCLUDES.find((include) => include === given);
  if (known !== undefined) return known;
  const error = invalidError("includeObject", given, "must be 'Metadata', 'Object', 'None', or empty");
  throw badRequest(`Unable to convert to Table as requested: ${fieldErrorText(error)}`);
}

/** Returns a table of objects as of now. */
export function tableAnswerOf(
  type: PrintedType,
  objects: JsonObject[],
  options: { includeObject: IncludeObject; listMeta: JsonObject; withColumns: boolean },
): JsonObject {
  return tableOf(type, objects, { ...options, now: serverTime() });
}

/** Returns an object that has the metadata of another and nothing else. */
export function partialMetadataOf(object: JsonObject): JsonObject {
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: storedMetadataOf(object) };
}

/** Returns a table, or an object of metadata, as another version of meta.k8s.io has it: only the version differs. */
export function inMetaVersion(form: JsonObject, version: MetaVersion): JsonObject {
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

// The number of templates is stored elsewhere, and an annotation only of the whole DaemonSet.
function storedMetadataOf(object: JsonObject): JsonObject {
  const metadata = object["metadata"] as JsonObject;
  const annotations = objectAt(metadata, "annotations");
  if (object["kind"] !== "DaemonSet" || annotations === undefined) return metadata;
  const { [SHOWN_ONLY]: _, ...others } = annotations;
  const { annotations: __, ...rest } = metadata;
  return Object.keys(others).length === 0 ? rest : { ...rest, annotations: others };
}

/** Returns the writer of a watch whose events show the metadata of the objects. */
export function partialEventWriter(resource: ServedResource, version: MetaVersion): EventWriter {
  const line = (event: string, object: JsonObject): Buffer =>
    eventLine(event, inMetaVersion(partialMetadataOf(object), version));
  return {
    write: (type, stored) => line(type, resource.read(stored).object),
    writeBookmark: (revision, options) => line("BOOKMARK", bookmarkOf(resource, revision, options)),
  };
}

/** Returns the writer of one watch whose events are tables of one row; only the first describes the columns. */
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
