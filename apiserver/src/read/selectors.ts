import type { ServedType } from "../builtin/served-type.js";
import type { Selectors } from "../decode/options/list-options.js";
import { badRequest } from "../errors/status-error.js";
import type { JsonObject } from "../json.js";
import { selectableFieldsOf } from "./field-labels.js";
import { parseInt64, parseRequirements, SelectorSyntaxError, type LabelRequirement } from "./label-selector.js";

/** What a field selector asks for. */
export interface FieldSelector {
  matches: (object: JsonObject) => boolean;
  /** The name that the selector demands, if it is one. */
  name?: string;
}

/** Reads a label selector; throws a 400 with Kubernetes' words if it cannot be read. */
export function parseLabelSelector(text: string): (labels: Record<string, string>) => boolean {
  try {
    const requirements = parseRequirements(text);
    return (labels) => requirements.every((requirement) => meetsRequirement(labels, requirement));
  } catch (error) {
    if (error instanceof SelectorSyntaxError) throw badRequest(error.message);
    throw error;
  }
}

function meetsRequirement(labels: Record<string, string>, { key, operator, values }: LabelRequirement): boolean {
  const value = Object.hasOwn(labels, key) ? labels[key] : undefined;
  switch (operator) {
    case "exists":
      return value !== undefined;
    case "!":
      return value === undefined;
    case "in":
    case "=":
    case "==":
      return value !== undefined && values.includes(value);
    case "notin":
    case "!=":
      return value === undefined || !values.includes(value);
    case ">":
    case "<": {
      const [actual, limit] = [parseInt64(value ?? ""), parseInt64(values[0] ?? "")];
      if (actual === undefined || limit === undefined) return false;
      return operator === ">" ? actual > limit : actual < limit;
    }
  }
}

/** Fails with a 400 for selectors that cannot be read, whatever the fields that they name. */
export function checkSelectorSyntax({ labelSelector, fieldSelector }: Selectors): void {
  parseLabelSelector(labelSelector);
  termsOf(fieldSelector).forEach((term) => parseTerm(fieldSelector, term));
}

interface FieldTerm {
  field: string;
  isNegated: boolean;
  value: string;
}

/** Reads a field selector for objects of `type`; throws a 400 if it cannot be read or names a field without index. */
export function parseFieldSelector(text: string, type: ServedType): FieldSelector {
  const terms = termsOf(text).map((term) => parseTerm(text, term));
  const selectable = selectableFieldsOf(type);
  const readers = terms.map(({ field }) => {
    const read = selectable.fields.get(field);
    if (read === undefined) throw badRequest(selectable.unsupported(field));
    return read;
  });
  const named = terms.find(({ field, isNegated }) => field === "metadata.name" && !isNegated);
  return {
    matches: (object) =>
      terms.every(({ value, isNegated }, index) => (readers[index]?.(object) === value) !== isNegated),
    ...(named === undefined ? {} : { name: named.value }),
  };
}

// Commas separate terms unless a backslash stands before them.
function termsOf(text: string): string[] {
  return (text.match(/(?:\\[^]|[^,\\]|\\$)+/g) ?? []) as string[];
}

function parseTerm(text: string, term: string): FieldTerm {
  const match = /^((?:\\[^]|[^\\=!]|!(?!=))*?)(!=|==|=)([^]*)$/.exec(term);
  if (match === null) throw badRequest(`invalid selector: '${text}'; can't understand '${term}'`);
  const [, field = "", operator, value = ""] = match;
  return { field, isNegated: operator === "!=", value: unescaped(value) };
}

function unescaped(value: string): string {
  let result = "";
  for (let index = 0; index < value.length; index++) {
    const character = value[index] as string;
    if (character === "," || character === "=") {
      throw badRequest(`invalid field selector: unescaped character in value: ${character.charCodeAt(0)}`);
    }
    if (character !== "\\") {
      result += character;
      continue;
    }
    const escaped = value[++index] ?? "";
    if (!["\\", ",", "="].includes(escaped)) {
      throw badRequest(`invalid field selector: invalid escape sequence: \\${escaped}`);
    }
    result += escaped;
  }
  return result;
}
