// The JSONPath subset that Kubernetes supports in printer columns: fields, indexes, slices, wildcards, and filters by equality.
import { type JsonValue, isObject, memberOf } from "../../json.js";

type Step = (values: JsonValue[]) => JsonValue[];

const STEP =
  /\.((?:\\.|[^.[\\])+)|\[['"]((?:\\.|[^\\])*?)['"]\]|\[(-?\d*(?::-?\d*){0,2})\]|(\[\*\]|\.\*)|\[\?\(@((?:\.|\[)[^=!<>]*?)\s*(==|!=)\s*(.+?)\)\]/y;

/**
 * Compiles a path such as `.status.conditions[?(@.type=="Ready")].status`. The result returns all matching values, or none if the path is invalid.
 */
export function compileJsonPath(path: string): (root: JsonValue) => JsonValue[] {
  const steps: Step[] = [];
  // Use a copy, because lastIndex is state and a filter compiles a nested path.
  const step = new RegExp(STEP);
  while (step.lastIndex < path.length) {
    const match = step.exec(path);
    if (match === null) return () => [];
    steps.push(stepOf(match));
  }
  return (root) => steps.reduce((values, step) => step(values), [root]);
}

function stepOf(match: RegExpExecArray): Step {
  const [, name, quoted, index, wildcard, filterPath, operator, literal] = match;
  const key = (name ?? quoted)?.replace(/\\(.)/g, "$1");
  if (wildcard === undefined && key !== undefined) return (values) => values.flatMap((value) => membersOf(value, key));
  if (index !== undefined) return (values) => values.flatMap((value) => itemsAt(value, index));
  if (filterPath === undefined) return (values) => values.flatMap(childrenOf);
  const find = compileJsonPath(filterPath);
  const wanted = literalOf(literal ?? "");
  return (values) => values.flatMap(childrenOf).filter((child) => find(child).includes(wanted) === (operator === "=="));
}

function membersOf(value: JsonValue, key: string): JsonValue[] {
  const member = isObject(value) ? memberOf(value, key) : undefined;
  return member === undefined ? [] : [member];
}

/** Returns the item at an index, or the items of a slice `from:to:step`. */
function itemsAt(value: JsonValue, index: string): JsonValue[] {
  if (!Array.isArray(value)) return [];
  const [from = "", to, step = ""] = index.split(":");
  if (to === undefined) {
    const item = value.at(Number(from));
    return item === undefined ? [] : [item];
  }
  const sliced = value.slice(Number(from), to === "" ? value.length : Number(to));
  const by = step === "" ? 1 : Number(step);
  return sliced.filter((_, at) => at % by === 0);
}

function childrenOf(value: JsonValue): JsonValue[] {
  if (Array.isArray(value)) return value;
  return isObject(value) ? Object.values(value) : [];
}

function literalOf(text: string): JsonValue {
  const quoted = /^(['"])([^]*)\1$/.exec(text);
  if (quoted !== null) return quoted[2] as string;
  if (text === "true" || text === "false") return text === "true";
  return Number(text);
}
