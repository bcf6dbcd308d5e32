import { forbiddenError, notSupportedError, type FieldError } from "../../errors/field-error.js";
import { parseInteger } from "./delete-options.js";
import { isTrue } from "./query-boolean.js";
import { invalidOptions } from "./write-options.js";

/** What narrows a list, as text. */
export interface Selectors {
  labelSelector: string;
  fieldSelector: string;
}

/** The query of a list or a watch. */
export interface ListOptions extends Selectors {
  limit: number;
  continueToken: string;
  /** "" when not given. */
  resourceVersion: string;
  resourceVersionMatch: string;
  isWatch: boolean;
  allowsBookmarks: boolean;
  sendInitialEvents: boolean | undefined;
  timeoutSeconds: number | undefined;
}

/**
 * Parses and checks the query of a list or a watch.
 *
 * `checkSyntax` is told of the selectors before what the other options say is judged. The resourceVersion is not judged here: that
 * comes last, after the fields of the selector and the continue token.
 */
export function parseListOptions(
  query: URLSearchParams,
  { isWatch, checkSyntax }: { isWatch: boolean; checkSyntax?: (selectors: Selectors) => void },
): ListOptions {
  const timeout = query.get("timeoutSeconds");
  const initial = query.get("sendInitialEvents");
  const options: ListOptions = {
    labelSelector: query.get("labelSelector") ?? "",
    fieldSelector: query.get("fieldSelector") ?? "",
    limit: parseInteger(query.get("limit") ?? "0"),
    continueToken: query.get("continue") ?? "",
    resourceVersion: query.get("resourceVersion") ?? "",
    resourceVersionMatch: query.get("resourceVersionMatch") ?? "",
    isWatch,
    allowsBookmarks: isTrue(query.get("allowWatchBookmarks")),
    sendInitialEvents: initial === null ? undefined : isTrue(initial),
    // Zero stands for the time that the server chooses.
    timeoutSeconds: parseInteger(timeout ?? "0") || undefined,
  };
  checkSyntax?.(options);
  const errors = isWatch ? checkWatch(options) : checkList(options);
  if (errors.length > 0) throw invalidOptions("ListOptions", errors);
  return options;
}

function checkWatch(options: ListOptions): FieldError[] {
  const { resourceVersion, sendInitialEvents: initial, resourceVersionMatch: match, continueToken } = options;
  const path = "resourceVersionMatch";
  // A watch that names no version gets initial events by default, and the rules of those hold for it.
  const isDefaulted = initial === undefined && match === "" && (resourceVersion === "" || resourceVersion === "0");
  const forContinue =
    continueToken !== "" && (match !== "" || isDefaulted)
      ? [forbiddenError(path, "resourceVersionMatch is forbidden when continue is provided")]
      : [];
  if (initial === undefined && match === "") return forContinue;
  if (initial !== undefined && match === "NotOlderThan") return forContinue;
  const detail =
    initial === undefined
      ? "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
      : "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
  const isUnknown = match !== "" && match !== "NotOlderThan";
  const unsupported = isUnknown ? [notSupportedError(path, match, ["NotOlderThan"])] : [];
  return [forbiddenError(path, detail), ...unsupported, ...forContinue];
}

function checkList(options: ListOptions): FieldError[] {
  const { resourceVersion, resourceVersionMatch: match, continueToken, sendInitialEvents } = options;
  const path = "resourceVersionMatch";
  const initial =
    sendInitialEvents === undefined
      ? []
      : [forbiddenError("sendInitialEvents", "sendInitialEvents is forbidden for list")];
  if (match === "") return initial;
  const errors = [...initial];
  if (continueToken !== "")
    errors.push(forbiddenError(path, "resourceVersionMatch is forbidden when continue is provided"));
  if (resourceVersion === "") {
    errors.push(forbiddenError(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"));
  }
  if (match !== "Exact" && match !== "NotOlderThan") {
    errors.push(notSupportedError(path, match, ["Exact", "NotOlderThan", ""]));
  } else if (match === "Exact" && resourceVersion === "0") {
    errors.push(forbiddenError(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'));
  }
  return errors;
}
