// The normal form of a CustomResourceDefinition: what the API server makes of it, without what means nothing. Each part that differs
// between two of them is reported, so a field that no rule knows is no exception.
import { isJsonObject, type JsonObject, type JsonValue } from "@gen-operator/schema";
import type { Crd, CrdVersion } from "../input/crd/crd.js";
import { canonical } from "./normal-schema.js";

/** Parts of a definition or of a version, by their paths. */
export type Parts = ReadonlyMap<string, JsonValue>;

/** Returns what a definition says besides its group, its plural and its versions, by path below the definition. */
export function partsOfCrd(crd: Crd): Parts {
  const spec = objectAt(crd.document, "spec");
  const { group: _group, versions: _versions, names, scope, conversion, preserveUnknownFields, ...others } = spec;
  const { plural: _plural, ...otherNames } = isJsonObject(names) ? names : {};
  return new Map<string, JsonValue>([
    ["spec.scope", scope ?? null],
    ...entriesOf("spec.names", {
      ...otherNames,
      singular: crd.singular,
      listKind: crd.listKind,
      shortNames: setOf(otherNames["shortNames"]),
      categories: setOf(otherNames["categories"]),
    }),
    ...entriesOf("spec.conversion", conversionOf(conversion)),
    ...(preserveUnknownFields === true ? [["spec.preserveUnknownFields", true] as const] : []),
    ...entriesOf("spec", others),
  ]);
}

/** Returns what a version says besides its name and its schema, by path below the version. */
export function partsOfVersion(crd: Crd, { name }: CrdVersion): Parts {
  const versions = objectAt(crd.document, "spec")["versions"];
  const version = (Array.isArray(versions) ? versions : []).find(
    (each): each is JsonObject => isJsonObject(each) && each["name"] === name,
  );
  const {
    name: _name,
    schema,
    subresources,
    additionalPrinterColumns,
    selectableFields,
    deprecated,
    ...others
  } = version ?? {};
  const { openAPIV3Schema: _schema, ...besideSchema } = isJsonObject(schema) ? schema : {};
  const { status, scale, ...otherSubresources } = isJsonObject(subresources) ? subresources : {};
  return new Map<string, JsonValue>([
    ...entriesOf("schema", besideSchema),
    ...(isJsonObject(status) ? [["subresources.status", status] as const] : []),
    ...(isJsonObject(scale) ? [["subresources.scale", withoutEmpty(scale)] as const] : []),
    ...entriesOf("subresources", otherSubresources),
    ...listed("additionalPrinterColumns", columnsOf(additionalPrinterColumns)),
    ...listed("selectableFields", setOf(selectableFields)),
    ...(deprecated === true ? [["deprecated", true] as const] : []),
    ...entriesOf("", others),
  ]);
}

// The defaults of the API server.
function conversionOf(conversion: JsonValue | undefined): JsonObject {
  const { strategy = "None", webhook, ...others } = isJsonObject(conversion) ? conversion : {};
  if (!isJsonObject(webhook)) return { strategy, ...others };
  const { clientConfig, ...rest } = webhook;
  if (!isJsonObject(clientConfig)) return { strategy, webhook, ...others };
  const { service, ...config } = clientConfig;
  const withPort = isJsonObject(service) ? { service: { port: 443, ...withoutEmpty(service) } } : {};
  return { strategy, webhook: { ...rest, clientConfig: { ...withoutEmpty(config), ...withPort } }, ...others };
}

// A column is named by its name, and the order is that of the table.
function columnsOf(columns: JsonValue | undefined): JsonValue[] {
  return (Array.isArray(columns) ? columns : []).map((column) => {
    if (!isJsonObject(column)) return column;
    const { priority = 0, description: _description, ...others } = column;
    return canonical({ ...withoutEmpty(others), ...(priority === 0 ? {} : { priority }) });
  });
}

function entriesOf(path: string, object: JsonObject): [string, JsonValue][] {
  return Object.entries(object).flatMap(([name, value]) => {
    const isEmpty = value === null || value === "" || (Array.isArray(value) && value.length === 0);
    return isEmpty ? [] : [[path === "" ? name : `${path}.${name}`, canonical(value)] as [string, JsonValue]];
  });
}

function listed(path: string, values: JsonValue[]): [string, JsonValue][] {
  return values.length === 0 ? [] : [[path, values]];
}

function setOf(values: JsonValue | undefined): JsonValue[] {
  const texts = (Array.isArray(values) ? values : []).map((value) => JSON.stringify(canonical(value)));
  return [...new Set(texts)].sort().map((text) => JSON.parse(text) as JsonValue);
}

function withoutEmpty(object: JsonObject): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== null && value !== ""));
}

function objectAt(object: object, member: string): JsonObject {
  const value = (object as JsonObject)[member];
  return isJsonObject(value) ? value : {};
}
