/** Paths of field names, such as `.metadata.labels`. */
import { type JsonObject, type JsonValue, isObject, memberOf, setMember } from "../json.js";

/** Returns the value at a path; undefined if there is none. */
export function valueAtPath(object: JsonObject, path: string): JsonValue | undefined {
  let value: JsonValue | undefined = object;
  for (const name of path.slice(1).split(".")) value = isObject(value) ? memberOf(value, name) : undefined;
  return value;
}

/** Sets the value at a path, in place. Missing parents are created; undefined removes the field. */
export function setAtPath(object: JsonObject, path: string, value: JsonValue | undefined): void {
  const names = path.slice(1).split(".");
  const last = names.pop() as string;
  let parent = object;
  for (const name of names) {
    const child = memberOf(parent, name);
    if (isObject(child)) parent = child;
    else if (value === undefined) return;
    else {
      const made: JsonObject = {};
      setMember(parent, name, made);
      parent = made;
    }
  }
  if (value === undefined) delete parent[last];
  else setMember(parent, last, value);
}
