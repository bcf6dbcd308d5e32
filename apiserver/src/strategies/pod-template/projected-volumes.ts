// Files in volumes: ConfigMaps, Secrets, downward API, and projected volumes.
import { objectsAt, textAt } from "../../builtin/read-path.js";
import { type FieldError, forbiddenError, invalidError, requiredError } from "../../errors/field-error.js";
import { type JsonObject, type JsonValue, memberOf, objectAt } from "../../json.js";
import { checkNoBacksteps, needs } from "../shared/volume-sources.js";
import { checkFieldReference, checkResourceReference } from "./env.js";

const MAX_MODE = 0o777;
const MODE_RULE = "must be a number between 0 and 0777 (octal), both inclusive";
const SHOWN_FIELDS = ["metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"];
const LEAST_TOKEN_SECONDS = 600;
const MOST_TOKEN_SECONDS = 2 ** 32;
const TAKEN = "conflicting duplicate paths";

/** Validates the files of a ConfigMap or Secret volume. */
export function checkFiles(path: string, source: JsonObject): FieldError[] {
  return [...checkMode(`${path}.defaultMode`, source["defaultMode"]), ...checkItems(path, source)];
}

function checkItems(path: string, source: JsonObject): FieldError[] {
  return objectsAt(source, "items").flatMap((item, index) => {
    const at = `${path}.items[${index}]`;
    return [
      ...needs("key", "path")(at, item),
      ...checkOwnPath(`${at}.path`, textAt(item, "path")),
      ...checkMode(`${at}.mode`, item["mode"]),
    ];
  });
}

function checkMode(field: string, mode: JsonValue | undefined): FieldError[] {
  const isMode = typeof mode !== "number" || (mode >= 0 && mode <= MAX_MODE);
  return isMode ? [] : [invalidError(field, mode, MODE_RULE)];
}

/** Validates a relative path that does not start with "..". */
export function checkOwnPath(field: string, path: string): FieldError[] {
  const isReserved = path.startsWith("..") && !path.startsWith("../");
  return [
    ...checkRelative(field, path),
    ...(isReserved ? [invalidError(field, path, "must not start with '..'")] : []),
  ];
}

/** Validates a relative path without "..". */
export function checkRelative(field: string, path: string): FieldError[] {
  return [
    ...(path.startsWith("/") ? [invalidError(field, path, "must be a relative path")] : []),
    ...checkNoBacksteps(field, path),
  ];
}

/** Validates a downward API volume. As in kube-apiserver, errors of files refer to the volume. */
export function checkDownward(path: string, source: JsonObject): FieldError[] {
  return [
    ...checkMode(`${path}.defaultMode`, source["defaultMode"]),
    ...objectsAt(source, "items").flatMap((item) => checkShownFile(path, item)),
  ];
}

function checkShownFile(path: string, item: JsonObject): FieldError[] {
  const [field, resource] = [objectAt(item, "fieldRef"), objectAt(item, "resourceFieldRef")];
  const both = "fieldRef and resourceFieldRef can not be specified simultaneously";
  return [
    ...needs("path")(path, item),
    ...checkOwnPath(`${path}.path`, textAt(item, "path")),
    ...(field === undefined ? [] : checkFieldReference(`${path}.fieldRef`, field, SHOWN_FIELDS)),
    ...(field !== undefined && resource !== undefined ? [invalidError(path, "resource", both)] : []),
    ...(field === undefined && resource !== undefined
      ? checkResourceReference(`${path}.resourceFieldRef`, resource, { needsContainer: true })
      : []),
    ...(field === undefined && resource === undefined
      ? [requiredError(path, "one of fieldRef and resourceFieldRef is required")]
      : []),
    ...checkMode(`${path}.mode`, item["mode"]),
  ];
}

type Projection = (path: string, source: JsonObject, volume: { path: string; take: Take }) => FieldError[];

/** Reserves a path in the volume; returns an error with `shown` if it is already used. */
type Take = (path: string, shown?: string) => FieldError[];

const PROJECTIONS: Record<string, Projection> = {
  secret: projectFiles,
  configMap: projectFiles,
  downwardAPI: (path, source, { take }) =>
    objectsAt(source, "items").flatMap((item) => [...checkShownFile(path, item), ...take(textAt(item, "path"))]),
  serviceAccountToken: projectToken,
};

/** Validates a projected volume. */
export function checkProjected(path: string, source: JsonObject): FieldError[] {
  const paths = new Set<string>();
  const take: Take = (file, shown = file) => {
    if (file === "") return [];
    if (paths.has(file)) return [invalidError(path, shown, TAKEN)];
    paths.add(file);
    return [];
  };
  return [
    ...checkMode(`${path}.defaultMode`, source["defaultMode"]),
    ...objectsAt(source, "sources").flatMap((one, index) => {
      const at = `${path}.sources[${index}]`;
      const given = Object.entries(PROJECTIONS).filter(([key]) => objectAt(one, key) !== undefined);
      return [
        ...given.flatMap(([key, check]) => check(`${at}.${key}`, objectAt(one, key) ?? {}, { path, take })),
        ...(given.length > 1 ? [forbiddenError(at, "may not specify more than 1 volume type per source")] : []),
      ];
    }),
  ];
}

function projectFiles(path: string, source: JsonObject, { take }: { take: Take }): FieldError[] {
  return [
    ...needs("name")(path, source),
    ...checkItems(path, source),
    ...objectsAt(source, "items").flatMap((item) => take(textAt(item, "path"), textAt(source, "name"))),
  ];
}

function projectToken(path: string, source: JsonObject, volume: { path: string }): FieldError[] {
  const [field, seconds] = [`${path}.expirationSeconds`, Number(memberOf(source, "expirationSeconds") ?? 0)];
  const file = textAt(source, "path");
  return [
    ...(seconds < LEAST_TOKEN_SECONDS
      ? [invalidError(field, seconds, "may not specify a duration less than 10 minutes")]
      : []),
    ...(seconds > MOST_TOKEN_SECONDS
      ? [invalidError(field, seconds, "may not specify a duration larger than 2^32 seconds")]
      : []),
    ...(file === "" ? [requiredError(`${volume.path}.path`)] : checkOwnPath(`${volume.path}.path`, file)),
  ];
}
