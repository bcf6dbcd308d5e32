// Validates the client configuration and the review versions of admission and conversion webhooks.
import { checkRequired, invalidError, requiredError, type FieldError } from "./field-error.js";
import { objectAt, stringAt, type JsonObject, type JsonValue } from "../json/json.js";
import { dns1035Problems, subdomainProblems } from "../strings/names.js";

/** The review versions that kube-apiserver supports. */
export const REVIEW_VERSIONS = ["v1", "v1beta1"];
const URL_FORM = "desired format: https://host[/path]";

/** Validates the review versions of a webhook; `missing` is the detail of the error for an empty list. */
export function checkReviewVersions(field: string, value: JsonValue | undefined, missing: string): FieldError[] {
  const versions = Array.isArray(value) ? value.map(String) : [];
  if (versions.length === 0) return [requiredError(field, missing)];
  const each = versions.flatMap((version, index) => {
    const at = `${field}[${index}]`;
    if (versions.indexOf(version) < index) return [invalidError(at, version, "duplicate version")];
    return dns1035Problems(version).map((problem) => invalidError(at, version, problem));
  });
  if (versions.some((version) => REVIEW_VERSIONS.includes(version))) return each;
  return [...each, invalidError(field, versions, `must include at least one of ${REVIEW_VERSIONS.join(", ")}`)];
}

/** Validates the client configuration of a webhook. */
export function checkClientConfig(field: string, config: JsonObject): FieldError[] {
  const url = stringAt(config, "url");
  const service = objectAt(config, "service");
  if ((url === undefined) === (service === undefined)) {
    return [requiredError(field, "exactly one of url or service is required")];
  }
  return service === undefined ? checkUrl(`${field}.url`, url ?? "") : checkService(`${field}.service`, service);
}

function checkUrl(field: string, text: string): FieldError[] {
  const match = /^(?:([a-z][a-z0-9+.-]*):)?(?:\/\/([^/?#]*))?([^?#]*)(?:\?([^#]*))?(?:#(.*))?$/i.exec(text);
  if (match === null || (match[1] === undefined && text.split("/")[0]?.includes(":") === true)) {
    const detail = `url must be a valid URL: parse ${JSON.stringify(text)}: missing protocol scheme; ${URL_FORM}`;
    return [requiredError(field, detail)];
  }
  const [, scheme = "", authority = "", , query, fragment] = match;
  const [host = "", user] = authority.split("@").reverse();
  return [
    ...(scheme === "https" ? [] : [invalidError(field, scheme, `'https' is the only allowed URL scheme; ${URL_FORM}`)]),
    ...(host === "" ? [invalidError(field, host, `host must be specified; ${URL_FORM}`)] : []),
    ...(user === undefined ? [] : [invalidError(field, user, "user information is not permitted in the URL")]),
    ...(fragment === undefined ? [] : [invalidError(field, fragment, "fragments are not permitted in the URL")]),
    ...(query === undefined ? [] : [invalidError(field, query, "query parameters are not permitted in the URL")]),
  ];
}

function checkService(field: string, service: JsonObject): FieldError[] {
  const { port } = service;
  const isPort = port === undefined || (typeof port === "number" && port >= 1 && port <= 65535);
  const detail = "port is not valid: must be between 1 and 65535, inclusive";
  return [
    // Kubernetes reports an empty namespace at `name`, and an empty name at `namespace`.
    ...checkRequired(`${field}.name`, service["namespace"]),
    ...checkRequired(`${field}.namespace`, service["name"]),
    ...checkPath(`${field}.path`, stringAt(service, "path")),
    ...(isPort ? [] : [invalidError(`${field}.port`, port, detail)]),
  ];
}

function checkPath(field: string, path: string | undefined): FieldError[] {
  if (path === undefined || path === "" || path === "/") return [];
  const wrong = (detail: string) => invalidError(field, path, detail);
  if (path === "//") return [wrong("segment[0] may not be empty")];
  // Kubernetes skips the first byte, assuming that it is a slash.
  const segments = Buffer.from(path).subarray(1).toString("latin1").replace(/\/$/, "").split("/");
  return [
    ...(path.startsWith("/") ? [] : [wrong("must start with a '/'")]),
    ...segments.flatMap((segment, index) =>
      segment === ""
        ? [wrong(`segment[${index}] may not be empty`)]
        : subdomainProblems(segment).map((problem) => wrong(`segment[${index}]: ${problem}`)),
    ),
  ];
}
