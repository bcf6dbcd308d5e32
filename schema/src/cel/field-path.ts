import { join } from "../values/check-value.js";

const STEP = /\.([^.[\]]+)|\['((?:[^'\\]|\\.)*)'\]/g;

/** Returns the path that a rule reports a problem at: that of the value with the rule's own, such as `.spec['a.b']`. */
export function joinFieldPath(path: string, fieldPath = ""): string {
  const names = [...fieldPath.matchAll(STEP)].map(([, name, quoted = ""]) => name ?? quoted.replace(/\\(.)/g, "$1"));
  return names.reduce(join, path);
}
